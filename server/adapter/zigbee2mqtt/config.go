package zigbee2mqtt

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"log/slog"
	"net"
	"net/url"
	"strings"
	"sync/atomic"
	"syscall"

	"github.com/deviceaccess/terraform-provider-deviceaccess/server/adapter"
)

// DefaultTopic is the default base_topic of Zigbee2MQTT.
const DefaultTopic = "zigbee2mqtt"

// Config configures the connection to a Zigbee2MQTT instance. Accounts store it as JSON; it may contain a password.
type Config struct {
	// Broker is the URL of the MQTT broker, with one of schemes. The port defaults to the scheme's.
	Broker string `json:"broker"`
	// Topic is the base_topic of Zigbee2MQTT.
	Topic    string `json:"topic"`
	Username string `json:"username,omitempty"`
	Password string `json:"password,omitempty"`
	// CA is a PEM certificate that verifies the broker's; empty to use the system's.
	CA string `json:"ca,omitempty"`
	// Cert and Key are a PEM client certificate and its key. Both must be set, or neither.
	Cert string `json:"cert,omitempty"`
	Key  string `json:"key,omitempty"`

	// Log defaults to no logging.
	Log *slog.Logger `json:"-"`

	// Control checks each address before it is dialed, as in net.Dialer. nil accepts all.
	Control func(network, address string, c syscall.RawConn) error `json:"-"`

	// CheckGateway receives the identity that the gateway reports, independent of the address, before anything is
	// requested from it or listed; empty if the gateway reports none. While it fails, the gateway is not used, and
	// the check is repeated. nil accepts all.
	CheckGateway func(ctx context.Context, gateway string) error `json:"-"`
}

// schemes maps the supported schemes: MQTT over TCP or over WebSocket, with or without TLS.
var schemes = map[string]struct {
	port     string
	tls, web bool
}{
	"mqtt": {port: "1883"}, "mqtts": {port: "8883", tls: true}, "ws": {port: "80", web: true},
	"wss": {port: "443", tls: true, web: true},
}

// Address returns the broker and the topic without credentials, in a canonical form.
func (c Config) Address() string {
	b, err := c.broker()
	if err != nil {
		return c.Broker + " " + c.Topic
	}
	host, port, _ := net.SplitHostPort(b.host)
	return b.scheme + "://" + net.JoinHostPort(adapter.NormalizeHost(host), port) + b.path + " " + c.Topic
}

// broker is the validated form of a Config.
type broker struct {
	scheme string
	host   string // with port
	path   string // of the WebSocket
	web    bool   // use WebSocket
	tls    *tls.Config
	dialer *net.Dialer
	// probing is set when the broker has requested a certificate and none is configured; nil without TLS or with a
	// certificate.
	asked *atomic.Bool
}

func (c Config) broker() (broker, error) {
	bad := func(message string) (broker, error) { return broker{}, adapter.Errorf(adapter.Invalid, "%s", message) }
	u, err := url.Parse(c.Broker)
	if err != nil || u.Hostname() == "" {
		return bad(wrongURL)
	}
	scheme, ok := schemes[u.Scheme]
	path := strings.TrimRight(u.EscapedPath(), "/")
	switch {
	case !ok, u.RawQuery != "", path != "" && !scheme.web:
		return bad(wrongURL)
	case u.User != nil:
		return bad("the broker's URL contains a user or a password: give them in their own settings")
	case !validTopic(c.Topic):
		return broker{}, adapter.Errorf(adapter.Invalid,
			"the topic must be the base_topic of Zigbee2MQTT, such as %s, of at most %d bytes, without # or + and "+
				"without a leading or trailing /", DefaultTopic, maxNameSize)
	}
	port := u.Port()
	if port == "" {
		port = scheme.port
	}
	b := broker{
		scheme: u.Scheme,
		host:   net.JoinHostPort(strings.ToLower(u.Hostname()), port),
		path:   path,
		web:    scheme.web,
		dialer: &net.Dialer{Control: c.Control},
	}
	if !scheme.tls {
		if c.CA+c.Cert+c.Key != "" {
			return bad("a CA or a certificate is allowed for mqtts:// and wss:// only")
		}
		return b, nil
	}
	b.tls = &tls.Config{MinVersion: tls.VersionTLS12, ServerName: u.Hostname()}
	if c.CA != "" {
		b.tls.RootCAs = x509.NewCertPool()
		if !b.tls.RootCAs.AppendCertsFromPEM([]byte(c.CA)) {
			return bad("the broker's CA is not a certificate in PEM")
		}
	}
	if c.Cert != "" || c.Key != "" {
		pair, err := tls.X509KeyPair([]byte(c.Cert), []byte(c.Key))
		if err != nil {
			return bad("the certificate for the broker and its key must both be set, in PEM, and match; the key " +
				"must not have a passphrase")
		}
		b.tls.Certificates = []tls.Certificate{pair}
		return b, nil
	}
	asked := new(atomic.Bool)
	b.asked, b.tls.GetClientCertificate = asked, func(*tls.CertificateRequestInfo) (*tls.Certificate, error) {
		asked.Store(true)
		return new(tls.Certificate), nil // no certificate
	}
	return b, nil
}

// validTopic reports whether the text can be the base_topic of Zigbee2MQTT.
func validTopic(text string) bool {
	return text != "" && len(text) <= maxNameSize && !strings.ContainsAny(text, "#+") &&
		!strings.HasPrefix(text, "/") && !strings.HasSuffix(text, "/")
}

const wrongURL = "the broker's URL must look like mqtts://host:8883 or mqtt://host:1883, " +
	"or over WebSocket like wss://host/mqtt or ws://host:9001"
