package zigbee2mqtt

import (
	"context"
	"crypto/rand"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/coder/websocket"
	"github.com/eclipse/paho.golang/packets"
	"github.com/eclipse/paho.golang/paho"

	"github.com/deviceaccess/terraform-provider-deviceaccess/server/adapter"
)

const (
	dialTimeout   = 10 * time.Second
	packetTimeout = 10 * time.Second
	// closeTimeout is how long a WebSocket waits for the response to its close frame.
	closeTimeout = time.Second
	// keepAlive is in seconds. A broker that hangs is detected after two or three times that.
	keepAlive = 10
)

// session is one connection to the broker.
type session struct {
	client *paho.Client
	topic  string
	once   sync.Once
	ended  chan struct{}
	reason error // why it has ended; read only after ended is closed
}

// dial connects to the broker and subscribes to the topics of Zigbee2MQTT. receive must not block. It fails with
// Invalid, GatewayDown, or AuthRevoked.
func dial(ctx context.Context, c Config, receive func(topic string, payload []byte, retained bool)) (*session, error) {
	b, err := c.broker()
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, dialTimeout+packetTimeout)
	defer cancel()
	inner, err := b.dial(ctx)
	if err != nil {
		return nil, unreachable(b, err)
	}
	return converse(ctx, c, b, inner, receive)
}

// converse is the part of dial after the connection is open.
func converse(ctx context.Context, c Config, b broker, inner net.Conn,
	receive func(topic string, payload []byte, retained bool),
) (*session, error) {
	conn := limitConn(inner)
	s := &session{topic: c.Topic, ended: make(chan struct{})}
	s.client = paho.NewClient(paho.ClientConfig{
		ClientID:           "deviceaccess-" + rand.Text(),
		Conn:               packets.NewThreadSafeConn(conn),
		PacketTimeout:      packetTimeout,
		OnClientError:      func(err error) { s.end(err) },
		OnServerDisconnect: func(*paho.Disconnect) { s.end(errors.New("the broker has closed the connection")) },
		OnPublishReceived: []func(paho.PublishReceived) (bool, error){func(m paho.PublishReceived) (bool, error) {
			receive(m.Packet.Topic, m.Packet.Payload, m.Packet.Retain)
			conn.processed()
			return true, nil
		}},
	})
	// The default of the client is 65535 messages, all kept in memory.
	waiting := uint16(maxWaiting)
	ack, err := s.client.Connect(ctx, &paho.Connect{
		ClientID:     s.client.ClientID(),
		CleanStart:   true,
		KeepAlive:    keepAlive,
		Properties:   &paho.ConnectProperties{ReceiveMaximum: &waiting},
		Username:     c.Username,
		UsernameFlag: c.Username != "",
		Password:     []byte(c.Password),
		PasswordFlag: c.Password != "",
	})
	if err != nil {
		conn.Close() //nolint:errcheck // the first error counts
		return nil, refused(b, ack, err)
	}
	subscribed, err := s.client.Subscribe(ctx, &paho.Subscribe{
		Subscriptions: []paho.SubscribeOptions{{Topic: c.Topic + "/#", QoS: 1, NoLocal: true}},
	})
	if err != nil {
		s.close()
		return nil, unsubscribed(b, c.Topic, subscribed)
	}
	return s, nil
}

func (b broker) dial(ctx context.Context) (net.Conn, error) {
	ctx, cancel := context.WithTimeout(ctx, dialTimeout)
	defer cancel()
	switch {
	case b.web:
		return b.dialWeb(ctx)
	case b.tls != nil:
		return (&tls.Dialer{NetDialer: b.dialer, Config: b.tls}).DialContext(ctx, "tcp", b.host)
	}
	return b.dialer.DialContext(ctx, "tcp", b.host)
}

// dialWeb opens MQTT over WebSocket (MQTT 5, section 6). Each attempt has its own transport, so that a failed
// connection is not kept. Redirects are not followed, because the password must not reach another host.
func (b broker) dialWeb(ctx context.Context) (net.Conn, error) {
	client := &http.Client{
		Transport: &http.Transport{
			TLSClientConfig:        b.tls,
			DialContext:            b.dialer.DialContext,
			MaxResponseHeaderBytes: adapter.MaxResponseHeader,
			DisableKeepAlives:      true,
		},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
	options := adapter.NewGatewayLimiter().
		DialOptions(websocket.DialOptions{HTTPClient: client, Subprotocols: []string{"mqtt"}})
	conn, response, err := websocket.Dial( //nolint:bodyclose // websocket closes it
		ctx,
		b.scheme+"://"+b.host+b.path,
		options,
	)
	switch {
	case err != nil && response != nil:
		return nil, fmt.Errorf("it does not speak MQTT over WebSocket (HTTP %d): check the port and the path, which "+
			"often is /mqtt", response.StatusCode)
	case err != nil:
		return nil, err
	case conn.Subprotocol() != "mqtt":
		_ = conn.CloseNow()
		return nil, errors.New("it speaks WebSocket, but not MQTT: check the port and the path, which often is /mqtt")
	}
	return webConn{websocket.NetConn(context.WithoutCancel(ctx), conn, websocket.MessageBinary), conn}, nil
}

// webConn closes the WebSocket as RFC 6455, section 7 requires, but waits for the peer only briefly. Closing the TCP
// connection without a close frame can put Mosquitto 2.0.11 into an endless loop in which it serves no client.
type webConn struct {
	net.Conn
	web *websocket.Conn
}

func (c webConn) Close() error {
	closed := make(chan error, 1)
	// Close gives up after 5 s.
	go func() { closed <- c.web.Close(websocket.StatusNormalClosure, "") }()
	select {
	case err := <-closed:
		return err
	case <-time.After(closeTimeout):
		return nil
	}
}

// unreachable returns the error of a failed connection.
func unreachable(b broker, err error) error {
	var (
		dns    *net.DNSError
		cert   *tls.CertificateVerificationError
		record tls.RecordHeaderError
		wait   net.Error
	)
	why := err.Error()
	switch {
	case errors.As(err, &dns):
		why = "its name cannot be resolved"
	case errors.As(err, &cert):
		why = "its certificate is not trusted (" + brief(cert.Err.Error(),
			maxReasonSize/2) + "); give the issuer's certificate as CA"
	case errors.As(err, &record):
		why = "it does not speak TLS on this port: use mqtt:// or ws://, or the port of its TLS listener"
	case errors.As(err, &wait) && wait.Timeout():
		why = "it does not answer"
	case asksForCertificate(err), b.asked != nil && b.asked.Load():
		why = wantsCertificate
	}
	return adapter.Errorf(adapter.GatewayDown, "the MQTT broker %s cannot be reached: %s", b.host,
		brief(why, maxReasonSize))
}

const wantsCertificate = "it asks for a certificate and accepts none or not this one: give one that it trusts, and " +
	"its key"

// asksForCertificate reports whether the peer has ended TLS because of the client certificate (RFC 8446, section
// 6.2).
func asksForCertificate(err error) bool {
	return strings.Contains(err.Error(), "remote error: tls:") &&
		(strings.Contains(err.Error(), "certificate") || strings.Contains(err.Error(), "handshake failure"))
}

// refused returns the error of a rejected connection. The codes are those of MQTT 5, section 3.2.2.2.
func refused(b broker, ack *paho.Connack, err error) error {
	if ack == nil || ack.ReasonCode == 0 {
		if errors.Is(err, context.DeadlineExceeded) {
			return adapter.Errorf(adapter.GatewayDown,
				"the MQTT broker %s accepts the connection, but does not answer: it hangs, or another service "+
					"listens there", b.host)
		}
		// The connection reset can arrive before its reason.
		if asksForCertificate(err) || b.asked != nil && b.asked.Load() {
			return adapter.Errorf(adapter.AuthRevoked, "the MQTT broker %s cannot be reached: %s", b.host,
				wantsCertificate)
		}
		hint := ""
		if b.tls == nil {
			hint = "; does it speak MQTT 5, and without TLS, on that port?"
		}
		return adapter.Errorf(adapter.GatewayDown, "%s does not answer like an MQTT broker: %s%s", b.host,
			brief(err.Error(), maxReasonSize), hint)
	}
	switch ack.ReasonCode {
	case packets.ConnackBadUsernameOrPassword, packets.ConnackNotAuthorized, packets.ConnackBadAuthenticationMethod:
		return adapter.Errorf(adapter.AuthRevoked, "the MQTT broker %s rejects the user name or the password", b.host)
	case packets.ConnackUnsupportedProtocolVersion:
		return adapter.Errorf(adapter.NotSupported,
			"the MQTT broker %s does not speak MQTT 5; Mosquitto does from 1.6 on", b.host)
	}
	return adapter.Errorf(adapter.GatewayDown, "the MQTT broker %s rejects the connection (reason %d)", b.host,
		ack.ReasonCode)
}

// unsubscribed returns the error of a failed subscription; ack is nil without a response. The codes are those of MQTT
// 5, section 3.9.3: a broker that does not report why it refuses reports an unspecified error.
func unsubscribed(b broker, topic string, ack *paho.Suback) error {
	if ack == nil || len(ack.Reasons) == 0 {
		return adapter.Errorf(adapter.GatewayDown,
			"the MQTT broker %s has accepted the connection, but does not answer: it hangs or restarts", b.host)
	}
	switch reason := ack.Reasons[0]; reason {
	case packets.SubackNotauthorized, packets.SubackUnspecifiederror:
		return adapter.Errorf(adapter.AuthRevoked,
			"the broker does not let the user read %s/#: allow that in its access rules", topic)
	default:
		return adapter.Errorf(adapter.GatewayDown, "the MQTT broker %s rejects the subscription to %s/# (reason %d)",
			b.host, topic, reason)
	}
}

// end records why the connection has ended.
func (s *session) end(err error) {
	s.once.Do(func() {
		s.reason = err
		close(s.ended)
	})
}

func (s *session) close() {
	_ = s.client.Disconnect(&paho.Disconnect{ReasonCode: 0})
	s.end(errors.New("closed"))
	<-s.client.Done()
}

// publish sends a command to Zigbee2MQTT and waits until the broker has acknowledged it. It fails with AuthRevoked,
// and with Unconfirmed when the broker may have received it.
func (s *session) publish(ctx context.Context, topic string, payload any) error {
	b, err := json.Marshal(payload)
	if err != nil {
		return adapter.Errorf(adapter.Invalid, "the command cannot be written as JSON")
	}
	sending, cancel := context.WithCancel(ctx)
	defer cancel()
	go func() { // otherwise the client waits for an acknowledgment that cannot arrive
		select {
		case <-s.ended:
			cancel()
		case <-sending.Done():
		}
	}()
	if err := adapter.MaySend(ctx); err != nil {
		return err
	}
	res, err := s.client.Publish(sending, &paho.Publish{Topic: s.topic + "/" + topic, QoS: 1, Payload: b})
	switch {
	case res != nil && res.ReasonCode == packets.PubackNotAuthorized:
		return adapter.Errorf(adapter.AuthRevoked,
			"the broker does not let the user write %s/#: allow that in its access rules", s.topic)
	case err != nil:
		return waitError(ctx, adapter.Unconfirmed, "the broker did not acknowledge the command")
	}
	return nil
}
