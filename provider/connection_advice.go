package provider

import (
	"errors"
	"net/http"
	"runtime"

	"github.com/deviceaccess/terraform-provider-deviceaccess/api"
)

// connectionAdvice is what can be done where no server has answered.
func connectionAdvice(err error) string {
	const nothingSent = "so nothing was sent. "
	switch {
	case errors.Is(err, http.ErrSchemeMismatch):
		return "Check `endpoint` (or " + envEndpoint + "): that server speaks plain http, so the address begins with http://."
	case api.IsUntrusted(err):
		return "The server's TLS certificate is not trusted, " + nothingSent + "Correct the name in `endpoint` (or " + envEndpoint + "), or " + howToTrust(runtime.GOOS) + "."
	case api.IsTurnedAway(err):
		return "What answers at `endpoint` (or " + envEndpoint + ") has refused the TLS connection, " + nothingSent + "As a rule it demands a certificate of the client, and the " +
			"provider has none to show: name an address of the server that demands none."
	case api.IsProxyPasswordWanted(err):
		return proxyWantsPassword
	case api.IsAboutProxy(err):
		return "Requests go through a proxy here, " + nothingSent + "Check that the proxy is running and lets requests to the server through. The environment variable HTTPS_PROXY " +
			"(for an http address HTTP_PROXY) names it; name the server in NO_PROXY if it can be reached without."
	case api.IsNotConnected(err):
		return "Check that the server is running, and that `endpoint` (or " + envEndpoint + ") is its address."
	case notTried(err):
		return "It was not tried before the time was up. Raise the provider's `max_concurrent_requests`, or the resource's `timeouts`."
	case api.IsBadAnswer(err):
		return "Something at `endpoint` (or " + envEndpoint + ") answers, but its answer broke off, was too slow or too long. Check that it is the " +
			"server itself, and what is between it and here, such as a proxy; then run Terraform again."
	}
	return ""
}

// proxyWantsPassword is what can be done where a proxy, and no server, answers 407.
const proxyWantsPassword = "The proxy between here and the server wants a user name and a password. Write them into the environment variable HTTPS_PROXY (for an http address " +
	"HTTP_PROXY), as http://USER:PASSWORD@HOST:PORT; or name the server in NO_PROXY if it can be reached without."

// howToTrust is how to have a certificate trusted on such a system. Go asks those of macOS and Windows themselves, and reads a file only
// elsewhere.
func howToTrust(system string) string {
	const authority = "the certificate of the authority that has signed it"
	switch system {
	case "darwin", "ios":
		return "add " + authority + " to the keychain and have it trusted there"
	case "windows":
		return "add " + authority + " to the trusted root certification authorities of the Windows certificate store"
	}
	return "let SSL_CERT_FILE name " + authority
}
