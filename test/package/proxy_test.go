package packagetest

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"io"
	"math/big"
	"net"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/deviceaccess/terraform-provider-deviceaccess/test/testenv"
)

// host is the name in the examples of proxies.
const host = "locks.example.com"

// authority is a certificate authority of the test.
type authority struct {
	cert *x509.Certificate
	key  *ecdsa.PrivateKey
}

func newAuthority(t *testing.T) authority {
	t.Helper()
	a := authority{cert: &x509.Certificate{
		SerialNumber:          big.NewInt(1),
		Subject:               pkix.Name{CommonName: "Authority of the test"},
		NotBefore:             time.Now().Add(-time.Hour),
		NotAfter:              time.Now().Add(24 * time.Hour),
		IsCA:                  true,
		BasicConstraintsValid: true,
		KeyUsage:              x509.KeyUsageCertSign,
	}}
	var der []byte
	der, a.key = a.sign(t, a.cert)
	var err error
	if a.cert, err = x509.ParseCertificate(der); err != nil {
		t.Fatal(err)
	}
	return a
}

// sign returns a certificate and its private key. An authority without a key signs itself.
func (a authority) sign(t *testing.T, cert *x509.Certificate) ([]byte, *ecdsa.PrivateKey) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	signer := a.key
	if signer == nil {
		signer = key
	}
	der, err := x509.CreateCertificate(rand.Reader, cert, a.cert, &key.PublicKey, signer)
	if err != nil {
		t.Fatal(err)
	}
	return der, key
}

// certificate returns a certificate for host and its private key as PEM.
func (a authority) certificate(t *testing.T) (cert, key string) {
	t.Helper()
	der, private := a.sign(t, &x509.Certificate{
		SerialNumber: big.NewInt(2),
		DNSNames:     []string{host},
		NotBefore:    time.Now().Add(-time.Hour),
		NotAfter:     time.Now().Add(24 * time.Hour),
		ExtKeyUsage:  []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
	})
	keyDER, err := x509.MarshalPKCS8PrivateKey(private)
	if err != nil {
		t.Fatal(err)
	}
	return string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})),
		string(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: keyDER}))
}

// client returns a client that trusts the authority and finds host on this machine. It follows no redirects.
func (a authority) client(t *testing.T) *http.Client {
	t.Helper()
	roots := x509.NewCertPool()
	roots.AddCert(a.cert)
	transport := &http.Transport{
		TLSClientConfig: &tls.Config{RootCAs: roots, MinVersion: tls.VersionTLS12},
		DialContext: func(ctx context.Context, network, address string) (net.Conn, error) {
			_, port, err := net.SplitHostPort(address)
			if err != nil {
				return nil, err
			}
			return (&net.Dialer{}).DialContext(ctx, network, net.JoinHostPort("127.0.0.1", port))
		},
	}
	t.Cleanup(transport.CloseIdleConnections)
	return &http.Client{
		Transport:     transport,
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
}

// publish configures the server for a proxy, with a sandbox besides the workspace, and returns a key of the sandbox.
func (h *home) publish(httpsPort int) (key string) {
	config := h.guide.replace(h.read(configFile),
		"#public-url: https://"+host, fmt.Sprintf("public-url: https://%s:%d", host, httpsPort),
		"#trust-proxy:", "trust-proxy:")
	h.write(configFile, config+"sandbox: true\n", 0o644)
	h.systemctl("restart", serverUnit)
	var workspaces []struct {
		ID        string `json:"workspace_id"`
		IsSandbox bool   `json:"is_sandbox"`
	}
	list := h.run("deviceaccess-server", "workspaces", "list", "--quiet", "--output", "json")
	if err := json.Unmarshal([]byte(list), &workspaces); err != nil {
		h.Fatalf("%v: %s", err, list)
	}
	for _, w := range workspaces {
		if w.IsSandbox {
			return keyIn(h.T, h.run("deviceaccess-server", "keys", "create", "--workspace", w.ID, "--quiet"))
		}
	}
	h.Fatalf("there is no sandbox: %s", list)
	return ""
}

// proxies starts nginx and Caddy with the examples of packaging/proxy, one after the other, and connects an account on a
// connect page through each.
func (h *home) proxies() {
	d, httpsPort := h.tree, freePort(h.T)
	key := h.publish(httpsPort)
	a := newAuthority(d.T)
	cert, private := a.certificate(d.T)
	const examples, certs = "/usr/share/doc/deviceaccess-server/examples/", "/etc/ssl/deviceaccess/"
	d.write(certs+"tls.crt", cert, 0o644)
	d.write(certs+"tls.key", private, 0o600)
	backend := fmt.Sprintf("127.0.0.1:%d", h.port)

	httpPort := freePort(d.T)
	d.write("/etc/nginx/conf.d/deviceaccess.conf", strings.NewReplacer(
		"listen 443 ssl", fmt.Sprintf("listen 127.0.0.1:%d ssl", httpsPort),
		"listen [::]:443 ssl;", "",
		"listen 80", fmt.Sprintf("listen 127.0.0.1:%d", httpPort),
		"listen [::]:80;", "",
		"127.0.0.1:8500", backend,
	).Replace(d.read(examples+"nginx.conf")), 0o644)
	d.run("rm", "-f", "/etc/nginx/sites-enabled/default")
	d.run("systemctl", "unmask", "nginx.service")
	d.systemctl("start", "nginx.service")
	d.walk(a.client(d.T), httpsPort, key, "nginx")
	res, err := a.client(d.T).Get(fmt.Sprintf("http://%s:%d/health", host, httpPort))
	if err != nil {
		d.Fatal(err)
	}
	res.Body.Close()
	if res.StatusCode != http.StatusPermanentRedirect || res.Header.Get("Location") != "https://"+host+"/health" {
		d.Errorf("plain HTTP is answered %s, Location %q", res.Status, res.Header.Get("Location"))
	}
	log := d.read("/var/log/nginx/access.log")
	if strings.Contains(log, "/connect/") || !strings.Contains(log, "/connect_webviews/create") {
		d.Error("the log of nginx has the paths of connect pages, or no requests")
	}
	d.systemctl("stop", "nginx.service")

	d.write("/etc/caddy/Caddyfile", "{\n\tadmin off\n\tauto_https disable_redirects\n}\n"+strings.NewReplacer(
		host+" {", fmt.Sprintf("%s:%d {\n\ttls %[3]stls.crt %[3]stls.key", host, httpsPort, certs),
		"127.0.0.1:8500", backend,
	).Replace(d.read(examples+"Caddyfile")), 0o644)
	d.run("chown", "caddy:caddy", certs+"tls.key")
	d.run("systemctl", "unmask", "caddy.service")
	d.systemctl("start", "caddy.service")
	d.walk(a.client(d.T), httpsPort, key, "caddy")
	if strings.Contains(d.run("journalctl", "--no-pager", "--unit=caddy.service"), "/connect/") {
		d.Error("the log of Caddy has the paths of connect pages")
	}
	d.systemctl("stop", "caddy.service")
}

// walk connects a simulated account on a connect page, as a person would.
func (d *tree) walk(client *http.Client, port int, key, proxy string) {
	d.Helper()
	base := fmt.Sprintf("https://%s:%d", host, port)
	get := func(url string) (int, string, error) {
		req, err := http.NewRequestWithContext(d.Context(), http.MethodGet, url, nil)
		if err != nil {
			return 0, "", err
		}
		res, err := client.Do(req)
		if err != nil {
			return 0, "", err
		}
		defer res.Body.Close()
		b, err := io.ReadAll(res.Body)
		return res.StatusCode, string(b), err
	}
	testenv.UntilOr(d.T, proxy+" answers", func() bool {
		status, _, err := get(base + "/health")
		return err == nil && status == http.StatusOK
	}, func() { d.Log(d.try("journalctl", "--no-pager", "--unit="+proxy+".service")) })
	var out struct {
		ConnectWebview struct {
			ConnectWebviewID string `json:"connect_webview_id"`
			URL, Status      string
		} `json:"connect_webview"`
	}
	api(d.T, client, base, key, "/connect_webviews/create", object{"accepted_providers": []string{"nuki"}}, &out)
	page := out.ConnectWebview.URL
	if !strings.HasPrefix(page, base+"/connect/") {
		d.Fatal("the link to the connect page has another address")
	}
	status, body, err := get(page + "/nuki")
	if err != nil || status != http.StatusOK || !strings.Contains(body, "<form") {
		d.Fatalf("%s: the login page is answered %d: %v", proxy, status, err)
	}
	form := url.Values{"email": {"jane@example.com"}, "password": {"1234"}}
	req, err := http.NewRequestWithContext(d.Context(), http.MethodPost, page+"/nuki", strings.NewReader(form.Encode()))
	if err != nil {
		d.Fatal(err)
	}
	req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	req.Header.Set("Origin", base) // as a browser
	res, err := client.Do(req)
	if err != nil {
		d.Fatal(err)
	}
	res.Body.Close()
	if res.StatusCode != http.StatusSeeOther {
		d.Fatalf("%s: the login is answered %s", proxy, res.Status)
	}
	api(d.T, client, base, key, "/connect_webviews/get",
		object{"connect_webview_id": out.ConnectWebview.ConnectWebviewID}, &out)
	if out.ConnectWebview.Status != "authorized" {
		d.Errorf("%s: after the login, the webview is %s", proxy, out.ConnectWebview.Status)
	}
}
