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

// DefaultTopic is where Zigbee2MQTT publishes unless it is told otherwise.
const DefaultTopic = "zigbee2mqtt"

// Config says how a Zigbee2MQTT is reached. As JSON it is what an account is kept as; it may hold a password.
type Config struct {
	Broker   string `json:"broker"` // see schemes; a port that is left out is the scheme's own
	Topic    string `json:"topic"`  // base_topic of Zigbee2MQTT
	Username string `json:"username,omitempty"`
	Password string `json:"password,omitempty"`
	// CA is a certificate in PEM that the broker's may be signed with; empty: those the machine trusts.
	CA string `json:"ca,omitempty"`
	// Cert and Key are a certificate in PEM, and its key, for a broker that asks for one. Both or neither.
	Cert string `json:"cert,omitempty"`
	Key  string `json:"key,omitempty"`

	Log *slog.Logger `json:"-"` // nil: none

	// Control judges each address before it is dialled, as of net.Dialer. nil: all are good.
	Control func(network, address string, c syscall.RawConn) error `json:"-"`

	// Met is told which gateway has answered, by what it says of itself and whatever address it was reached at, before anything
	// is asked of it or listed; empty: it does not say. Where it fails the gateway is left alone, and tried again. nil: all are good.
	Met func(ctx context.Context, gateway string) error `json:"-"`
}

// schemes are the ways to speak to a broker, with their usual ports: MQTT over TCP or over WebSocket, without or with
// encryption.
var schemes = map[string]struct {
	port     string
	tls, web bool
}{
	"mqtt": {port: "1883"}, "mqtts": {port: "8883", tls: true}, "ws": {port: "80", web: true}, "wss": {port: "443", tls: true, web: true},
}

// Address is the broker and the topic, without credentials, the same for the same gateway.
func (c Config) Address() string {
	b, err := c.broker()
	if err != nil {
		return c.Broker + " " + c.Topic
	}
	host, port, _ := net.SplitHostPort(b.host)
	return b.scheme + "://" + net.JoinHostPort(adapter.Host(host), port) + b.path + " " + c.Topic
}

// broker is a Config that was checked.
type broker struct {
	scheme string
	host   string // with its port
	path   string // of a WebSocket
	web    bool   // it is spoken to over WebSocket
	tls    *tls.Config
	dialer *net.Dialer
	asked  *atomic.Bool // it has asked for a certificate, and there is none; nil: there is one, or no TLS
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
		return bad("the broker's URL holds a user or a password: give them apart from it")
	case c.Topic == "" || len(c.Topic) > longestName || strings.ContainsAny(c.Topic, "#+") || strings.HasPrefix(c.Topic, "/") || strings.HasSuffix(c.Topic, "/"):
		return broker{}, adapter.Errorf(adapter.Invalid, "the topic must be base_topic of Zigbee2MQTT, such as %s, of at most %d bytes, without # or + and without / at its ends", DefaultTopic, longestName)
	}
	port := u.Port()
	if port == "" {
		port = scheme.port
	}
	b := broker{scheme: u.Scheme, host: net.JoinHostPort(strings.ToLower(u.Hostname()), port), path: path, web: scheme.web, dialer: &net.Dialer{Control: c.Control}}
	if !scheme.tls {
		if c.CA+c.Cert+c.Key != "" {
			return bad("a CA or a certificate is of use for mqtts:// and wss:// only")
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
			return bad("the certificate for the broker and its key must be given both, in PEM, and belong together; the key without a passphrase")
		}
		b.tls.Certificates = []tls.Certificate{pair}
		return b, nil
	}
	asked := new(atomic.Bool)
	b.asked, b.tls.GetClientCertificate = asked, func(*tls.CertificateRequestInfo) (*tls.Certificate, error) {
		asked.Store(true)
		return new(tls.Certificate), nil // none
	}
	return b, nil
}

const wrongURL = "the broker's URL must look like mqtts://host:8883 or mqtt://host:1883, or over WebSocket like wss://host/mqtt or ws://host:9001"
