package webhook

import (
	"bytes"
	"compress/gzip"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"log"
	"math/big"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"os"
	"os/exec"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"code.dny.dev/ssrf"

	"github.com/deviceaccess/terraform-provider-deviceaccess/server/event"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/store/storetest"
	"github.com/deviceaccess/terraform-provider-deviceaccess/test/testenv"
)

func TestGuard_DialsOnlyPublicAddresses(t *testing.T) {
	t.Parallel()
	allow := []netip.Prefix{netip.MustParsePrefix("10.1.0.0/16"), netip.MustParsePrefix("fd12::/16")}
	guard := newGuard(allow)
	for address, public := range map[string]bool{
		"127.0.0.1": false, "127.8.8.8": false, "::1": false, "::ffff:127.0.0.1": false, "::ffff:10.1.0.1": false, "0.0.0.0": false, "::": false,
		"10.0.0.1": false, "172.16.0.1": false, "192.168.1.1": false, "169.254.169.254": false, "fd00:ec2::254": false,
		"100.64.0.1": false, "100.100.100.200": false, "64:ff9b::7f00:1": false, "64:ff9b:1::1": false, "fe80::1": false, "fe80::1%eth0": false,
		"192.0.2.1": false, "198.51.100.1": false, "203.0.113.1": false, "2001:db8::1": false, "198.18.0.1": false,
		"224.0.0.1": false, "ff02::1": false, "255.255.255.255": false, "240.0.0.1": false, "2002:7f00:1::": false, "2001::1": false,
		"64:ff9b::a9fe:a9fe": false, "::ffff:0:7f00:1": false, "::127.0.0.1": false, "fec0::1": false, "100::1": false, "3fff::1": false, "5f00::1": false,
		"0.1.2.3": false, "192.0.0.1": false, "192.88.99.1": false,
		"8.8.8.8": true, "2606:4700:4700::1111": true, "10.1.2.3": true, "fd12::1": true,
	} {
		if told := !(Options{AllowPrefixes: allow}).Refuses(netip.MustParseAddr(address)); told != public &&
			address != "::ffff:10.1.0.1" { // dialed as 10.1.0.1
			t.Errorf("%s: Refuses: %v", address, told)
		}
		network := "tcp4"
		if strings.Contains(address, ":") {
			network, address = "tcp6", "["+address+"]"
		}
		if err := guard.Safe(network, address+":8080", nil); (err == nil) != public {
			t.Errorf("%s: %v", address, err)
		}
	}
	if guard.Safe("udp4", "8.8.8.8:80", nil) == nil {
		t.Error("a protocol other than TCP passes")
	}
}

// The metadata and platform services of the large clouds, in each form in which a dialer receives an address.
func TestGuard_RefusesCloudServices(t *testing.T) {
	t.Parallel()
	forms := func(v4 string) []string {
		b := netip.MustParseAddr(v4).As4()
		hex := fmt.Sprintf("%x:%x", binary.BigEndian.Uint16(b[:2]), binary.BigEndian.Uint16(b[2:]))
		all := []string{v4, "2002:" + hex + "::"}
		for _, network := range []string{"::ffff:", "64:ff9b::", "64:ff9b:1::", "::ffff:0:", "::"} {
			all = append(all, network+hex)
		}
		return all
	}
	for service, address := range map[string]string{
		"AWS, Azure, Google Cloud, DigitalOcean, OpenStack, Oracle": "169.254.169.254",
		"AWS over IPv6":           "fd00:ec2::254",
		"AWS containers":          "169.254.170.2",
		"AWS pods":                "169.254.170.23",
		"AWS pods over IPv6":      "fd00:ec2::23",
		"AWS DNS":                 "169.254.169.253",
		"Azure platform":          "168.63.129.16",
		"Google Cloud over IPv6":  "fd20:ce::254",
		"Alibaba Cloud":           "100.100.100.200",
		"Oracle Cloud":            "192.0.0.192",
		"Oracle Cloud over IPv6":  "fd00:c1::a9fe:a9fe",
		"Tencent Cloud":           "169.254.0.23",
		"Scaleway":                "169.254.42.42",
		"Scaleway over IPv6":      "fd00:42::42",
		"OpenStack over IPv6":     "fe80::a9fe:a9fe",
		"OpenStack with its zone": "fe80::a9fe:a9fe%eth0",
	} {
		all := []string{address}
		if !strings.Contains(address, ":") {
			all = forms(address)
		}
		for _, form := range all {
			if !(Options{}).Refuses(netip.MustParseAddr(form)) {
				t.Errorf("%s: %s passes", service, form)
			}
		}
		allowed := Options{AllowPrefixes: []netip.Prefix{netip.MustParsePrefix("168.63.129.16/32")}}
		if refused := allowed.Refuses(netip.MustParseAddr(address)); refused != (address != "168.63.129.16") {
			t.Errorf("%s, with the Azure platform allowed: refused: %t", service, refused)
		}
	}
}

func TestGuard_RefusesOwnAddresses(t *testing.T) {
	t.Parallel()
	own := func() ([]net.Addr, error) {
		return []net.Addr{
			&net.IPNet{IP: net.ParseIP("127.0.0.1"), Mask: net.CIDRMask(8, 32)},
			&net.IPNet{IP: net.ParseIP("5.9.0.7"), Mask: net.CIDRMask(24, 32)},
			&net.IPNet{IP: net.ParseIP("2a01:4f8::7"), Mask: net.CIDRMask(64, 128)},
		}, nil
	}
	for name, c := range map[string]struct {
		address, allow string
		own            func() ([]net.Addr, error)
		refused        bool
	}{
		"own address":           {address: "5.9.0.7:443", own: own, refused: true},
		"own IPv6 address":      {address: "[2a01:4f8::7]:443", own: own, refused: true},
		"same network":          {address: "5.9.0.8:443", own: own},
		"same IPv6 network":     {address: "[2a01:4f8::8]:443", own: own},
		"allowed address":       {address: "5.9.0.7:443", allow: "5.9.0.0/24", own: own},
		"allowed IPv6 address":  {address: "[2a01:4f8::7]:443", allow: "2a01:4f8::7/128", own: own},
		"other address allowed": {address: "5.9.0.7:443", allow: "10.0.0.0/8", own: own, refused: true},
		"unknown interfaces": {
			address: "5.9.0.8:443",
			own:     func() ([]net.Addr, error) { return nil, errors.New("no netlink") },
			refused: true,
		},
	} {
		var allow []netip.Prefix
		if c.allow != "" {
			allow = append(allow, netip.MustParsePrefix(c.allow))
		}
		g := newGuard(allow)
		g.own = c.own
		network := "tcp4"
		if strings.HasPrefix(c.address, "[") {
			network = "tcp6"
		}
		if err := g.Safe(network, c.address, nil); (err != nil) != c.refused {
			t.Errorf("%s: %v", name, err)
		}
	}
	if all, err := newGuard(nil).own(); err != nil || len(all) == 0 {
		t.Errorf("this machine has the addresses %v, %v", all, err)
	}
}

// The server listens at the addresses of these names, so only the guard prevents a request.
func TestGuard_NameOfPrivateAddress(t *testing.T) {
	t.Parallel()
	reached := 0
	s := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { reached++ }))
	defer s.Close()
	port := s.URL[strings.LastIndex(s.URL, ":"):]
	for _, host := range []string{"127.0.0.1", "localhost", "0.0.0.0", "[::ffff:127.0.0.1]", "2130706433", "0x7f.1", "127.1"} {
		res, err := newClient(nil, nil).Get("http://" + host + port)
		if err == nil {
			t.Errorf("%s answers %s", host, res.Status)
			continue
		}
		if numeric := strings.HasPrefix(host, "2") || strings.HasPrefix(host, "0x") || host == "127.1"; !numeric &&
			!errors.Is(err, ssrf.ErrProhibitedIP) {
			t.Errorf("%s: %v", host, err)
		}
	}
	if reached > 0 {
		t.Errorf("reached %d times", reached)
	}
	if res, err := newClient([]netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}, nil).Get(s.URL); err != nil ||
		res.StatusCode != http.StatusOK {
		t.Errorf("allowed address: %v", err)
	}
}

// resolver resolves every name to the next of its addresses and repeats the last one, like a name
// that changes after a check (DNS rebinding).
func resolver(t *testing.T, addresses ...string) *net.Resolver {
	t.Helper()
	server, err := net.ListenPacket("udp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { server.Close() })
	go func() {
		query := make([]byte, 1500)
		for asked := 0; ; {
			n, from, err := server.ReadFrom(query)
			if err != nil {
				return
			}
			end := 12 // header length; the name, its type, and its class follow
			for query[end] != 0 {
				end += int(query[end]) + 1
			}
			kind := binary.BigEndian.Uint16(query[end+1:])
			answer := append([]byte{query[0], query[1], 0x81, 0x80, 0, 1, 0, 0, 0, 0, 0, 0}, query[12:min(end+5, n)]...)
			if kind == 1 { // an IPv4 address
				ip := netip.MustParseAddr(addresses[min(asked, len(addresses)-1)]).As4()
				asked++
				answer[7] = 1
				answer = append(append(answer, 0xc0, 12, 0, 1, 0, 1, 0, 0, 0, 0, 0, 4), ip[:]...)
			}
			server.WriteTo(answer, from)
		}
	}()
	return &net.Resolver{PreferGo: true, Dial: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return (&net.Dialer{}).DialContext(ctx, "udp", server.LocalAddr().String())
	}}
}

// 127.0.0.2 represents a public address.
func TestGuard_NameThatChangesAfterCheck(t *testing.T) {
	t.Parallel()
	var reached atomic.Int32
	s := httptest.NewServer(
		http.HandlerFunc(func(http.ResponseWriter, *http.Request) { reached.Add(1) }),
	) // at 127.0.0.1
	defer s.Close()
	port := s.URL[strings.LastIndex(s.URL, ":"):]
	public := netip.MustParsePrefix("127.0.0.2/32")
	listener, err := net.Listen("tcp", "127.0.0.2"+port)
	if err != nil {
		storetest.Missing(t, "a second loopback address: %v", err)
	}
	var proper atomic.Int32
	other := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		proper.Add(1)
		w.Header().Set("Connection", "close") // the next request resolves the name again
	})}
	go other.Serve(listener)
	defer other.Close()
	client := newClient([]netip.Prefix{public}, resolver(t, "127.0.0.2", "127.0.0.1"))
	res, err := client.Get("http://hooks.example.test" + port)
	if err != nil || res.StatusCode != http.StatusOK || proper.Load() != 1 {
		t.Fatalf("first request: %v", err)
	}
	res.Body.Close()
	if _, err = client.Get("http://hooks.example.test" + port); !errors.Is(err, ssrf.ErrProhibitedIP) ||
		reached.Load() > 0 {
		t.Errorf("after the change: %v, reached %d times", err, reached.Load())
	}
}

// A process reads the proxy variables once and ignores them for local names. The test therefore
// starts another process that requests another name.
func TestGuard_IgnoresProxy(t *testing.T) {
	if os.Getenv("DEVICEACCESS_TEST_PROXIED") == "" {
		t.Parallel()
		var proxied atomic.Int32
		proxy := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { proxied.Add(1) }))
		defer proxy.Close()
		cmd := exec.CommandContext(t.Context(), os.Args[0], "-test.run", "^TestGuard_IgnoresProxy$", "-test.v")
		for _, name := range []string{"HTTP_PROXY", "HTTPS_PROXY", "http_proxy", "https_proxy", "DEVICEACCESS_TEST_PROXIED"} {
			cmd.Env = append(cmd.Env, name+"="+proxy.URL)
		}
		if out, err := cmd.CombinedOutput(); err != nil ||
			!bytes.Contains(out, []byte("--- PASS: TestGuard_IgnoresProxy")) {
			t.Errorf("%v\n%s", err, out)
		}
		if proxied.Load() != 1 {
			t.Errorf("the proxy was reached %d times, want once by the client that uses it", proxied.Load())
		}
		return
	}
	if _, err := http.Get("http://hooks.example.test/"); err != nil {
		t.Errorf("a client that uses the variables: %v", err)
	}
	client := newClient([]netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}, resolver(t, "127.0.0.1"))
	if res, err := client.Get("http://hooks.example.test:1/"); err == nil { // no listener
		t.Errorf("the proxy answers %s", res.Status)
	}
}

// No response of an endpoint costs much memory or more than the timeout.
func TestHostileResponses_AreBounded(t *testing.T) {
	t.Parallel()
	within := func(d time.Duration) *Deliverer {
		return New(nil, Options{AllowPrefixes: []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}, Timeout: d})
	}
	const little = 2 * time.Second // also on a busy machine
	long := testenv.Timeout(testenv.WaitTimeout)
	impatient, patient := within(little), within(long)
	var bomb bytes.Buffer
	z := gzip.NewWriter(&bomb)
	io.CopyN(z, zeros{}, 64<<20)
	z.Close()
	for name, c := range map[string]struct {
		answer func(w http.ResponseWriter, r *http.Request)
		ok     bool
		says   string // in the problem
		begins string // the bounded excerpt
		hangs  bool   // until the timeout
	}{
		"endless body": {answer: func(w http.ResponseWriter, _ *http.Request) {
			for {
				if _, err := io.WriteString(w, strings.Repeat("x", 4096)); err != nil {
					return
				}
			}
		}, ok: true, begins: strings.Repeat("x", excerptSize)},
		"slow body": {
			answer: func(w http.ResponseWriter, r *http.Request) {
				io.WriteString(w, "begun")
				http.NewResponseController(w).Flush()
				<-r.Context().Done()
			},
			ok:     true,
			begins: "begun",
			hangs:  true,
		},
		"no answer": {answer: func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() }, says: "within 2s", hangs: true},
		"header bomb": {answer: func(w http.ResponseWriter, _ *http.Request) {
			for i := range 200 {
				w.Header().Set(fmt.Sprint("X-", i), strings.Repeat("x", 1000))
			}
		}, says: "headers exceeded"},
		"endless hints": {answer: func(w http.ResponseWriter, r *http.Request) {
			for r.Context().Err() == nil {
				w.WriteHeader(http.StatusEarlyHints)
			}
		}, says: "headers exceeded"},
		"gzip bomb": {answer: func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Encoding", "gzip")
			w.Write(bomb.Bytes())
		}, ok: true, begins: "\x1f"},
		// Net/http then leaves the connection to its caller.
		"another protocol": {answer: func(w http.ResponseWriter, r *http.Request) {
			c, _, _ := http.NewResponseController(w).Hijack()
			io.WriteString(c, "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: chess\r\n\r\n")
			io.Copy(io.Discard, c)
		}, says: "101"},
	} {
		s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			io.Copy(io.Discard, r.Body) // only then does the server notice the end of the request
			c.answer(w, r)
		}))
		d := patient
		if c.hangs {
			d = impatient
		}
		a := d.send(t.Context(),
			Endpoint{Webhook: Webhook{URL: s.URL, Secret: "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"}},
			event.Event{Type: "device.connected"})
		if a.ok() != c.ok || !strings.Contains(a.problem, c.says) || a.latency >= long {
			t.Errorf("%s: %q after %s", name, a.problem, a.latency)
		}
		if len(a.excerpt) > excerptSize || !strings.HasPrefix(a.excerpt, c.begins) {
			t.Errorf("%s: an excerpt of %d bytes, %.10q", name, len(a.excerpt), a.excerpt)
		}
		s.CloseClientConnections()
		s.Close()
	}
}

type zeros struct{}

func (zeros) Read(b []byte) (int, error) { clear(b); return len(b), nil }

// The names in a certificate appear in the problem and may be printed on a terminal.
func TestProblem_HasNoControlCharacters(t *testing.T) {
	t.Parallel()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	shape := &x509.Certificate{
		SerialNumber: big.NewInt(1),
		DNSNames:     []string{"\x1b[2Jwiped"},
		NotAfter:     time.Now().Add(time.Hour),
	}
	certificate, err := x509.CreateCertificate(rand.Reader, shape, shape, key.Public(), key)
	if err != nil {
		t.Fatal(err)
	}
	s := httptest.NewUnstartedServer(http.NotFoundHandler())
	s.TLS = &tls.Config{Certificates: []tls.Certificate{{Certificate: [][]byte{certificate}, PrivateKey: key}}}
	s.Config.ErrorLog = log.New(io.Discard, "", 0)
	s.StartTLS()
	defer s.Close()
	d := New(nil, Options{})
	d.client = newClient([]netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}, resolver(t, "127.0.0.1"))
	a := d.send(
		t.Context(),
		Endpoint{
			Webhook: Webhook{
				URL:    strings.Replace(s.URL, "127.0.0.1", "hooks.example.test", 1),
				Secret: "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw",
			},
		},
		event.Event{Type: "device.connected"},
	)
	if !strings.Contains(a.problem, "?[2Jwiped") {
		t.Errorf("%q", a.problem)
	}
}
