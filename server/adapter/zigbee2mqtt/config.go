package zigbee2mqtt

import (
	"crypto/tls"
	"crypto/x509"
	"log/slog"
	"net"
	"net/url"
	"strings"

	"github.com/deviceaccess/terraform-provider-deviceaccess/server/adapter"
)

// DefaultTopic is where Zigbee2MQTT publishes unless it is told otherwise.
const DefaultTopic = "zigbee2mqtt"

// Config says how a Zigbee2MQTT is reached. As JSON it is what an account is kept as; it may hold a password.
type Config struct {
	Broker   string `json:"broker"` // mqtts://host:8883 or mqtt://host:1883; a port that is left out is that one
	Topic    string `json:"topic"`  // base_topic of Zigbee2MQTT
	Username string `json:"username,omitempty"`
	Password string `json:"password,omitempty"`
	// CA is a certificate in PEM that the broker's may be signed with; empty: those the machine trusts.
	CA string `json:"ca,omitempty"`

	Log *slog.Logger `json:"-"` // nil: none
}

// Address is the broker and the topic, without credentials, the same for the same gateway.
func (c Config) Address() string {
	b, err := c.broker()
	if err != nil {
		return c.Broker + " " + c.Topic
	}
	return b.scheme + "://" + b.host + " " + c.Topic
}

// broker is a Config that was checked.
type broker struct {
	scheme string
	host   string // with its port
	tls    *tls.Config
}

func (c Config) broker() (broker, error) {
	u, err := url.Parse(c.Broker)
	if err != nil || u.Hostname() == "" || (u.Scheme != "mqtt" && u.Scheme != "mqtts") || strings.Trim(u.Path, "/") != "" {
		return broker{}, adapter.Errorf(adapter.Invalid, "the broker's URL must look like mqtts://host:8883 or mqtt://host:1883")
	}
	if u.User != nil {
		return broker{}, adapter.Errorf(adapter.Invalid, "the broker's URL holds a user or a password: give them apart from it")
	}
	if c.Topic == "" || strings.ContainsAny(c.Topic, "#+") || strings.HasPrefix(c.Topic, "/") || strings.HasSuffix(c.Topic, "/") {
		return broker{}, adapter.Errorf(adapter.Invalid, "the topic must be base_topic of Zigbee2MQTT, such as %s, without # or + and without / at its ends", DefaultTopic)
	}
	b := broker{scheme: u.Scheme}
	port := u.Port()
	if port == "" {
		port = map[string]string{"mqtt": "1883", "mqtts": "8883"}[u.Scheme]
	}
	b.host = net.JoinHostPort(strings.ToLower(u.Hostname()), port)
	if u.Scheme == "mqtts" {
		b.tls = &tls.Config{MinVersion: tls.VersionTLS12, ServerName: u.Hostname()}
	}
	if c.CA != "" {
		if b.tls == nil {
			return broker{}, adapter.Errorf(adapter.Invalid, "a CA is of use for mqtts:// only")
		}
		b.tls.RootCAs = x509.NewCertPool()
		if !b.tls.RootCAs.AppendCertsFromPEM([]byte(c.CA)) {
			return broker{}, adapter.Errorf(adapter.Invalid, "the broker's CA is not a certificate in PEM")
		}
	}
	return b, nil
}
