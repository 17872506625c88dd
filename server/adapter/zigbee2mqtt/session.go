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
	dialWithin   = 10 * time.Second
	packetWithin = 10 * time.Second // until the broker acknowledges
	farewell     = time.Second      // for it to say that it has heard of the end
	keepAlive    = 10               // seconds; a broker that hangs is noticed in two or three times that
)

// session is one connection to the broker.
type session struct {
	client *paho.Client
	topic  string
	once   sync.Once
	ended  chan struct{}
	reason error // why it has ended; to be read after ended is closed
}

// dial connects to the broker and subscribes to all that Zigbee2MQTT publishes. Receive must not block.
// It fails with Invalid, GatewayDown or AuthRevoked.
func dial(ctx context.Context, c Config, receive func(topic string, payload []byte, retained bool)) (*session, error) {
	b, err := c.broker()
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, dialWithin+packetWithin)
	defer cancel()
	inner, err := b.dial(ctx)
	if err != nil {
		return nil, unreachable(b, err)
	}
	return converse(ctx, c, b, inner, receive)
}

// converse is dial from when there is somebody to speak to.
func converse(ctx context.Context, c Config, b broker, inner net.Conn, receive func(topic string, payload []byte, retained bool)) (*session, error) {
	conn := measure(inner)
	s := &session{topic: c.Topic, ended: make(chan struct{})}
	s.client = paho.NewClient(paho.ClientConfig{
		ClientID: "deviceaccess-" + rand.Text(), Conn: packets.NewThreadSafeConn(conn), PacketTimeout: packetWithin,
		OnClientError:      func(err error) { s.end(err) },
		OnServerDisconnect: func(*paho.Disconnect) { s.end(errors.New("the broker has closed the connection")) },
		OnPublishReceived: []func(paho.PublishReceived) (bool, error){func(m paho.PublishReceived) (bool, error) {
			receive(m.Packet.Topic, m.Packet.Payload, m.Packet.Retain)
			conn.taken()
			return true, nil
		}},
	})
	waiting := uint16(mostWaiting) // which the client makes 65535 otherwise, and keeps them all
	ack, err := s.client.Connect(ctx, &paho.Connect{ClientID: s.client.ClientID(), CleanStart: true, KeepAlive: keepAlive, Properties: &paho.ConnectProperties{ReceiveMaximum: &waiting},
		Username: c.Username, UsernameFlag: c.Username != "", Password: []byte(c.Password), PasswordFlag: c.Password != ""})
	if err != nil {
		conn.Close() //nolint:errcheck // the first error counts
		return nil, refused(b, ack, err)
	}
	subscribed, err := s.client.Subscribe(ctx, &paho.Subscribe{Subscriptions: []paho.SubscribeOptions{{Topic: c.Topic + "/#", QoS: 1, NoLocal: true}}})
	if err != nil {
		s.close()
		return nil, unsubscribed(b, c.Topic, subscribed)
	}
	return s, nil
}

func (b broker) dial(ctx context.Context) (net.Conn, error) {
	ctx, cancel := context.WithTimeout(ctx, dialWithin)
	defer cancel()
	switch {
	case b.web:
		return b.dialWeb(ctx)
	case b.tls != nil:
		return (&tls.Dialer{NetDialer: b.dialer, Config: b.tls}).DialContext(ctx, "tcp", b.host)
	}
	return b.dialer.DialContext(ctx, "tcp", b.host)
}

// dialWeb speaks MQTT over WebSocket (MQTT 5, section 6). A connection that comes to nothing is not kept: each try has a
// transport of its own. The password is the broker's alone: it goes nowhere else.
func (b broker) dialWeb(ctx context.Context) (net.Conn, error) {
	client := &http.Client{
		Transport:     &http.Transport{TLSClientConfig: b.tls, DialContext: b.dialer.DialContext, MaxResponseHeaderBytes: adapter.AnswerHeader, DisableKeepAlives: true},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
	conn, response, err := websocket.Dial(ctx, b.scheme+"://"+b.host+b.path, adapter.NewPace().Web(websocket.DialOptions{HTTPClient: client, Subprotocols: []string{"mqtt"}})) //nolint:bodyclose // websocket closes it
	switch {
	case err != nil && response != nil:
		return nil, fmt.Errorf("it does not speak MQTT over WebSocket there (HTTP %d): see to the port and the path, which often is /mqtt", response.StatusCode)
	case err != nil:
		return nil, err
	case conn.Subprotocol() != "mqtt":
		_ = conn.CloseNow()
		return nil, errors.New("it speaks WebSocket there, but not MQTT: see to the port and the path, which often is /mqtt")
	}
	return webConn{websocket.NetConn(context.WithoutCancel(ctx), conn, websocket.MessageBinary), conn}, nil
}

// webConn is closed as RFC 6455, section 7 wants it, but whoever is at the other end has a moment only to say that he has
// heard of it. To hang up without a word is no way: Mosquitto 2.0.11 then goes round in circles now and then, and serves
// nobody any more.
type webConn struct {
	net.Conn
	web *websocket.Conn
}

func (c webConn) Close() error {
	closed := make(chan error, 1)
	go func() { closed <- c.web.Close(websocket.StatusNormalClosure, "") }() // which cuts it off after 5 s
	select {
	case err := <-closed:
		return err
	case <-time.After(farewell):
		return nil
	}
}

// unreachable is why nobody could be spoken to.
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
		why = "its certificate is not trusted (" + brief(cert.Err.Error(), mostReason/2) + "); give the one it is signed with as CA"
	case errors.As(err, &record):
		why = "it does not speak TLS there: use mqtt:// or ws://, or the port of its TLS listener"
	case errors.As(err, &wait) && wait.Timeout():
		why = "it does not answer"
	case asksForCertificate(err), b.asked != nil && b.asked.Load():
		why = wantsCertificate
	}
	return adapter.Errorf(adapter.GatewayDown, "the MQTT broker %s cannot be reached: %s", b.host, brief(why, mostReason))
}

const wantsCertificate = "it asks for a certificate, and takes none or not this one: give one that it trusts, and its key"

// asksForCertificate says whether the other end has ended TLS because of our certificate (RFC 8446, section 6.2).
func asksForCertificate(err error) bool {
	return strings.Contains(err.Error(), "remote error: tls:") && (strings.Contains(err.Error(), "certificate") || strings.Contains(err.Error(), "handshake failure"))
}

// refused is why the broker did not take the connection. The codes are those of MQTT 5, section 3.2.2.2.
func refused(b broker, ack *paho.Connack, err error) error {
	if ack == nil || ack.ReasonCode == 0 {
		if errors.Is(err, context.DeadlineExceeded) {
			return adapter.Errorf(adapter.GatewayDown, "the MQTT broker %s takes the connection, but does not answer: it hangs, or something else listens there", b.host)
		}
		// That the connection is reset can be heard of before why.
		if asksForCertificate(err) || b.asked != nil && b.asked.Load() {
			return adapter.Errorf(adapter.AuthRevoked, "the MQTT broker %s cannot be reached: %s", b.host, wantsCertificate)
		}
		hint := ""
		if b.tls == nil {
			hint = "; does it speak MQTT 5, and without TLS, on that port?"
		}
		return adapter.Errorf(adapter.GatewayDown, "the MQTT broker %s does not answer as one: %s%s", b.host, brief(err.Error(), mostReason), hint)
	}
	switch ack.ReasonCode {
	case packets.ConnackBadUsernameOrPassword, packets.ConnackNotAuthorized, packets.ConnackBadAuthenticationMethod:
		return adapter.Errorf(adapter.AuthRevoked, "the MQTT broker %s refuses the user name or the password", b.host)
	case packets.ConnackUnsupportedProtocolVersion:
		return adapter.Errorf(adapter.NotSupported, "the MQTT broker %s does not speak MQTT 5; Mosquitto does from 1.6 on", b.host)
	}
	return adapter.Errorf(adapter.GatewayDown, "the MQTT broker %s refuses the connection (reason %d)", b.host, ack.ReasonCode)
}

// unsubscribed is why the broker, whose answer is nil where there was none, does not tell what is published. The codes are
// those of MQTT 5, section 3.9.3: one that does not wish to say why it refuses says that something is wrong.
func unsubscribed(b broker, topic string, ack *paho.Suback) error {
	if ack == nil || len(ack.Reasons) == 0 {
		return adapter.Errorf(adapter.GatewayDown, "the MQTT broker %s has taken the connection, but does not answer any more: it hangs or restarts", b.host)
	}
	switch reason := ack.Reasons[0]; reason {
	case packets.SubackNotauthorized, packets.SubackUnspecifiederror:
		return adapter.Errorf(adapter.AuthRevoked, "the broker does not let the user read %s/#: allow that in its access rules", topic)
	default:
		return adapter.Errorf(adapter.GatewayDown, "the MQTT broker %s cannot tell what is published below %s (reason %d)", b.host, topic, reason)
	}
}

// end notes why the connection is over.
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

// publish sends a command to Zigbee2MQTT and waits until the broker has it. It fails with AuthRevoked, and with
// Unconfirmed where the broker may have it.
func (s *session) publish(ctx context.Context, topic string, payload any) error {
	b, err := json.Marshal(payload)
	if err != nil {
		return adapter.Errorf(adapter.Invalid, "the command cannot be written as JSON")
	}
	sending, cancel := context.WithCancel(ctx)
	defer cancel()
	go func() { // the client waits on for an acknowledgement that cannot come
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
		return adapter.Errorf(adapter.AuthRevoked, "the broker does not let the user write %s/#: allow that in its access rules", s.topic)
	case err != nil:
		return lost(ctx, adapter.Unconfirmed, "the broker did not acknowledge the command")
	}
	return nil
}
