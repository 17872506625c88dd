package zigbee

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/pbkdf2"
	"crypto/rand"
	"crypto/sha512"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/base64"
	"encoding/pem"
	"fmt"
	"math/big"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/deviceaccess/terraform-provider-deviceaccess/test/gateways"
)

// broker is a Mosquitto with users, and listeners with and without TLS and WebSocket.
type broker struct {
	dir     string
	program string
	plain   string // host:port
	tls     string // host:port
	web     string // host:port of the WebSocket listener
	webTLS  string // host:port of the WebSocket listener with TLS
	// host:port of the TLS listener that requires a certificate
	strict string
	ca     string // PEM
	cert   string // PEM, of a client
	key    string // PEM
	cmd    *exec.Cmd
	ended  chan struct{}

	mu    sync.Mutex
	users map[string]string // lines of the password file
}

// startBroker starts a broker with these users, by name and password.
func startBroker(dir string, users map[string]string) (*broker, error) {
	program, err := findMosquitto()
	if err != nil {
		return nil, err
	}
	b := &broker{dir: dir, program: program, users: map[string]string{}}
	if err := freePorts(&b.plain, &b.tls, &b.web, &b.webTLS, &b.strict); err != nil {
		return nil, err
	}
	if err := b.certify(); err != nil {
		return nil, err
	}
	config := "persistence false\nallow_anonymous false\npassword_file " + b.file(
		"passwords",
	) + "\nacl_file " + b.file(
		"acl",
	) +
		"\nlistener " + port(
		b.plain,
	) + " 127.0.0.1\nlistener " + port(
		b.web,
	) + " 127.0.0.1\nprotocol websockets\n"
	for _, l := range []struct{ address, more string }{
		{b.tls, ""},
		{b.webTLS, "protocol websockets\n"},
		{b.strict, "cafile " + b.file("cert.pem") + "\nrequire_certificate true\n"},
	} {
		config += "listener " + port(
			l.address,
		) + " 127.0.0.1\ncertfile " + b.file(
			"cert.pem",
		) + "\nkeyfile " + b.file(
			"key.pem",
		) + "\n" + l.more
	}
	// otherwise it changes to a user that cannot read these files
	if os.Geteuid() == 0 {
		config = "user root\n" + config
	}
	// Every user may do everything, except the stranger, who may read and write nothing, and the limited user.
	acl := "pattern readwrite #\nuser " + Stranger + "\ntopic deny #\nuser " + Limited +
		"\ntopic deny " + Topic + "/bridge/request/#\n"
	for name, content := range map[string]string{"mosquitto.conf": config, "acl": acl} {
		if err := os.WriteFile(b.file(name), []byte(content), 0o600); err != nil {
			return nil, err
		}
	}
	for user, password := range users {
		if b.users[user], err = line(user, password); err != nil {
			return nil, err
		}
	}
	if err := b.write(); err != nil {
		return nil, err
	}
	return b, b.start()
}

func (b *broker) file(name string) string { return filepath.Join(b.dir, name) }

func findMosquitto() (string, error) {
	for _, name := range []string{
		"mosquitto",
		"/usr/sbin/mosquitto",
		"/usr/local/sbin/mosquitto",
		"/opt/homebrew/sbin/mosquitto",
	} {
		if path, err := exec.LookPath(name); err == nil {
			return path, nil
		}
	}
	return "", fmt.Errorf("%w: mosquitto, on the PATH or in /usr/sbin", gateways.ErrMissing)
}

// start starts Mosquitto and waits until all of its listeners accept connections.
func (b *broker) start() error {
	b.cmd = exec.Command( //nolint:noctx // it outlives the test that starts it
		b.program,
		"-c",
		b.file("mosquitto.conf"),
	)
	b.cmd.SysProcAttr = dieWithParent()
	log, err := os.OpenFile(b.file("mosquitto.log"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	defer log.Close()
	b.cmd.Stdout, b.cmd.Stderr = log, log
	if err := b.cmd.Start(); err != nil {
		return fmt.Errorf("start mosquitto: %w", err)
	}
	cmd, ended := b.cmd, make(chan struct{})
	b.ended = ended
	go func() {
		_ = cmd.Wait()
		close(ended)
	}()
	waiting := slices.DeleteFunc([]string{b.plain, b.web, b.tls, b.webTLS, b.strict},
		func(address string) bool { return address == "" }) // an open broker has one
	for deadline := time.Now().Add(startTimeout); len(waiting) > 0; {
		conn, err := (&net.Dialer{Timeout: time.Second}).DialContext(context.Background(), "tcp", waiting[0])
		if err == nil {
			_ = conn.Close() // nothing was sent
			waiting = waiting[1:]
			continue
		}
		select {
		case <-ended:
			text, _ := os.ReadFile(b.file("mosquitto.log"))
			return fmt.Errorf("mosquitto ended: %s", text)
		case <-time.After(10 * time.Millisecond):
			if time.Now().After(deadline) {
				return fmt.Errorf("mosquitto does not listen: %w", err)
			}
		}
	}
	return nil
}

func (b *broker) kill() {
	_ = b.cmd.Process.Kill()
	<-b.ended
}

// removeUser removes a user, with a short delay.
func (b *broker) removeUser(user string) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	delete(b.users, user)
	if err := b.write(); err != nil {
		return err
	}
	return b.cmd.Process.Signal(syscall.SIGHUP)
}

// write writes the password file.
func (b *broker) write() error {
	var lines strings.Builder
	for _, line := range b.users {
		lines.WriteString(line + "\n")
	}
	return os.WriteFile(b.file("passwords"), []byte(lines.String()), 0o600)
}

// line returns a user's line of Mosquitto's password file.
func line(user, password string) (string, error) {
	salt := make([]byte, 12)
	if _, err := rand.Read(salt); err != nil {
		return "", err
	}
	hash, err := pbkdf2.Key(sha512.New, password, salt, 101, sha512.Size)
	if err != nil {
		return "", err
	}
	return fmt.Sprintf(
		"%s:$7$101$%s$%s",
		user,
		base64.StdEncoding.EncodeToString(salt),
		base64.StdEncoding.EncodeToString(hash),
	), nil
}

// certify creates a self-signed certificate for 127.0.0.1.
func (b *broker) certify() error {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return err
	}
	template := &x509.Certificate{
		SerialNumber:          big.NewInt(1),
		Subject:               pkix.Name{CommonName: "lab"},
		NotBefore:             time.Now().Add(-time.Hour),
		NotAfter:              time.Now().Add(24 * time.Hour),
		IsCA:                  true,
		BasicConstraintsValid: true,
		KeyUsage:              x509.KeyUsageDigitalSignature | x509.KeyUsageCertSign,
		IPAddresses:           []net.IP{net.IPv4(127, 0, 0, 1)},
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	if err != nil {
		return err
	}
	secret, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		return err
	}
	cert := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})
	b.ca = string(cert)
	if b.cert, b.key, err = clientOf(template, key); err != nil {
		return err
	}
	if err := os.WriteFile(b.file("cert.pem"), cert, 0o600); err != nil {
		return err
	}
	return os.WriteFile(b.file("key.pem"), pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: secret}), 0o600)
}

// clientOf creates a client certificate that the CA signs.
func clientOf(ca *x509.Certificate, by *ecdsa.PrivateKey) (cert, secret string, err error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return "", "", err
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(2),
		Subject:      pkix.Name{CommonName: "client"},
		NotBefore:    ca.NotBefore,
		NotAfter:     ca.NotAfter,
		KeyUsage:     x509.KeyUsageDigitalSignature,
		ExtKeyUsage:  []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth},
	}
	der, err := x509.CreateCertificate(rand.Reader, template, ca, &key.PublicKey, by)
	if err != nil {
		return "", "", err
	}
	raw, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		return "", "", err
	}
	return string(
			pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}),
		), string(
			pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: raw}),
		), nil
}

// freePorts sets addresses that are free now. Their ports are below the ranges from which systems choose ports of their
// own, so no other socket takes them before Mosquitto listens, or while Mosquitto is down.
func freePorts(addresses ...*string) error {
	const first, end, tries = 10_000, 32_000, 100
	for i := 0; len(addresses) > 0; i++ {
		n, err := rand.Int(rand.Reader, big.NewInt(end-first))
		if err != nil {
			return err
		}
		address := fmt.Sprintf("127.0.0.1:%d", first+n.Int64())
		l, err := (&net.ListenConfig{}).Listen(context.Background(), "tcp", address)
		switch {
		case err == nil:
			defer func() { _ = l.Close() }() // open until the others are chosen, so that all differ
			*addresses[0], addresses = address, addresses[1:]
		case i >= tries:
			return fmt.Errorf("no free port in %d tries: %w", tries, err)
		}
	}
	return nil
}

func port(address string) string { return address[strings.LastIndex(address, ":")+1:] }
