package main

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/json"
	"encoding/pem"
	"math/big"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/coder/websocket"
	"github.com/eclipse/paho.golang/packets"
)

// door is the login of a fake gateway. The gateways have no locks: only their logins matter.
type door struct {
	mu             sync.Mutex
	user, password string
	inside         map[int]func() // closes the connection
	entered        int
}

// enter checks a login. The caller passes out, which closes its connection, and calls left when the connection ends.
func (d *door) enter(user, password string, out func()) (left func(), ok bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if user != d.user || password != d.password {
		return nil, false
	}
	if d.inside == nil {
		d.inside = map[int]func(){}
	}
	d.entered++
	n := d.entered
	d.inside[n] = out
	return func() {
		d.mu.Lock()
		defer d.mu.Unlock()
		delete(d.inside, n)
	}, true
}

// change changes the accepted login and closes all connections.
func (d *door) change(user, password string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.user, d.password = user, password
	for _, out := range d.inside {
		out()
	}
}

// open reports whether a client is connected.
func (d *door) open() bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	return len(d.inside) > 0
}

// fakeZWave starts a zwave-js-server behind a proxy that requires a login and a token in the query.
func fakeZWave(t *testing.T, d *door, token string) (address string) {
	t.Helper()
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		user, password, _ := r.BasicAuth()
		over := r.Context()
		thrown := make(chan struct{})
		left, ok := d.enter(user, password, sync.OnceFunc(func() { close(thrown) }))
		if ok {
			defer left()
		}
		if !ok || r.URL.Query().Get("token") != token {
			w.WriteHeader(http.StatusUnauthorized)
			return
		}
		c, err := websocket.Accept(w, r, nil)
		if err != nil {
			return
		}
		defer c.CloseNow()
		go func() {
			select {
			case <-thrown:
			case <-over.Done():
			}
			c.CloseNow()
		}()
		text := `{"type":"version","homeId":7,"driverVersion":"15","serverVersion":"3","minSchemaVersion":0,"maxSchemaVersion":44}`
		for c.Write(over, websocket.MessageText, []byte(text)) == nil {
			_, data, err := c.Read(over)
			var command struct {
				ID string `json:"messageId"`
			}
			if err != nil || json.Unmarshal(data, &command) != nil {
				return
			}
			text = `{"type":"result","success":true,"messageId":"` + command.ID + `","result":{"state":{"nodes":[]}}}`
		}
	}))
	t.Cleanup(s.Close)
	return strings.Replace(s.URL, "http", "ws", 1)
}

// fakeBroker starts an MQTT broker with a Zigbee2MQTT. With a configuration it uses TLS.
func fakeBroker(t *testing.T, d *door, secure *tls.Config) (hostPort string) {
	t.Helper()
	l, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	hostPort = l.Addr().String()
	if secure != nil {
		l = tls.NewListener(l, secure)
	}
	t.Cleanup(func() {
		l.Close()
		d.change("", "closed")
	})
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			go speakMQTT(c, d)
		}
	}()
	return hostPort
}

func speakMQTT(c net.Conn, d *door) {
	defer c.Close()
	say := func(kind byte, fill func(*packets.ControlPacket)) {
		p := packets.NewControlPacket(kind)
		fill(p)
		p.WriteTo(c)
	}
	for {
		p, err := packets.ReadPacket(c)
		if err != nil {
			return
		}
		switch m := p.Content.(type) {
		case *packets.Connect:
			left, ok := d.enter(m.Username, string(m.Password), func() { c.Close() })
			if !ok {
				say(packets.CONNACK, func(p *packets.ControlPacket) {
					p.Content.(*packets.Connack).ReasonCode = packets.ConnackBadUsernameOrPassword
				})
				return
			}
			defer left()
			say(packets.CONNACK, func(*packets.ControlPacket) {})
		case *packets.Subscribe:
			say(packets.SUBACK, func(p *packets.ControlPacket) {
				p.Content.(*packets.Suback).PacketID, p.Content.(*packets.Suback).Reasons = m.PacketID, []byte{0}
			})
			for topic, payload := range map[string]string{
				"state":   `{"state":"online"}`,
				"info":    `{"config":{}}`,
				"devices": `[]`,
			} {
				say(packets.PUBLISH, func(p *packets.ControlPacket) {
					p.Content.(*packets.Publish).Topic, p.Content.(*packets.Publish).Payload = "zigbee2mqtt/bridge/"+topic, []byte(
						payload,
					)
				})
			}
		case *packets.Pingreq:
			say(packets.PINGRESP, func(*packets.ControlPacket) {})
		}
	}
}

// clientCertificate returns a self-signed client certificate and its key in PEM.
func clientCertificate(t *testing.T) (cert, key string) {
	t.Helper()
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1),
		Subject:      pkix.Name{CommonName: "server"},
		NotBefore:    time.Now().Add(-time.Hour),
		NotAfter:     time.Now().Add(time.Hour),
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &private.PublicKey, private)
	if err != nil {
		t.Fatal(err)
	}
	secret, err := x509.MarshalPKCS8PrivateKey(private)
	if err != nil {
		t.Fatal(err)
	}
	return string(
			pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}),
		), string(
			pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: secret}),
		)
}

// onlyFor returns the configuration of a TLS server that accepts only this client certificate, and the server's
// certificate in PEM.
func onlyFor(t *testing.T, client string) (c *tls.Config, ca string) {
	t.Helper()
	s := httptest.NewTLSServer(http.NotFoundHandler()) // has a certificate for this machine
	t.Cleanup(s.Close)
	known := x509.NewCertPool()
	known.AppendCertsFromPEM([]byte(client))
	return &tls.Config{
			MinVersion:   tls.VersionTLS12,
			Certificates: s.TLS.Certificates,
			ClientAuth:   tls.RequireAndVerifyClientCert,
			ClientCAs:    known,
		},
		string(
			pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: s.Certificate().Raw}),
		)
}
