package zigbee2mqtt_test

import (
	"bytes"
	"flag"
	"io"
	"log/slog"
	"net"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/deviceaccess/terraform-provider-deviceaccess/server/adapter"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/adapter/adaptertest"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/adapter/zigbee2mqtt"
	"github.com/deviceaccess/terraform-provider-deviceaccess/test/gateways/zigbee"
	"github.com/deviceaccess/terraform-provider-deviceaccess/test/testenv"
)

func TestMain(m *testing.M) {
	defer zigbee.StopShared()
	// Most tests wait for the radio, so more of them run concurrently than there are processors.
	if err := flag.Set("test.parallel", strconv.Itoa(zigbee.LocksPerProfile)); err != nil {
		panic(err)
	}
	m.Run()
}

func TestConformance(t *testing.T) {
	for _, profile := range []zigbee.Profile{zigbee.Plain, zigbee.Hidden, zigbee.Masked} {
		t.Run(string(profile), func(t *testing.T) {
			t.Parallel()
			adaptertest.Run(t, func(t *testing.T) adaptertest.Bed { return newBed(t, profile).suite() })
		})
	}
}

// bed is an adapter for a lock of the shared gateway, with a proxy in front of the broker.
type bed struct {
	*testing.T
	*zigbee2mqtt.Adapter
	gateway *zigbee.Gateway
	lock    *zigbee.Lock
	ref     adapter.DeviceRef
	user    string
	proxy   *proxy
	config  zigbee2mqtt.Config
	log     *strings.Builder
}

func newBed(t *testing.T, profile zigbee.Profile) *bed {
	t.Helper()
	g := zigbee.Shared(t)
	return onGateway(t, g, g.Lease(t, profile))
}

func onGateway(t *testing.T, g *zigbee.Gateway, lock *zigbee.Lock) *bed {
	t.Helper()
	b := connect(t, g, lock)
	b.until("the lock is online", func() bool {
		d, err := b.Device(t.Context(), b.ref)
		return err == nil && d.Online
	})
	b.until("it is read", func() bool { // the read shows that PINs are hidden
		_, err := b.Codes(t.Context(), b.ref, true)
		return err == nil
	})
	return b
}

// connect returns a bed whose device is not read yet.
func connect(t *testing.T, g *zigbee.Gateway, lock *zigbee.Lock) *bed {
	t.Helper()
	b := &bed{
		T:       t,
		gateway: g,
		lock:    lock,
		ref:     adapter.DeviceRef(lock.Ref),
		log:     &strings.Builder{},
	}
	user, password := g.User(t)
	b.user, b.proxy = user, newProxy(t, strings.TrimPrefix(g.Broker, "mqtt://"), lock.Ref)
	b.config = zigbee2mqtt.Config{
		Broker:   "mqtt://" + b.proxy.address(),
		Topic:    zigbee.Topic,
		Username: user,
		Password: password,
		Log:      slog.New(slog.NewTextHandler(&locked{w: b.log}, &slog.HandlerOptions{Level: slog.LevelDebug})),
	}
	a, err := zigbee2mqtt.New(b.config)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := a.Close(); err != nil {
			t.Error(err)
		}
		if strings.Contains(b.log.String(), password) {
			t.Error("the password is in the log")
		}
	})
	b.Adapter = a
	return b
}

func (b *bed) until(what string, ok func() bool) {
	b.Helper()
	testenv.Until(b, what, ok)
}

func (b *bed) fails(class adapter.Class) func() bool {
	return func() bool {
		_, err := b.Devices(b.Context())
		return err != nil && adapter.ClassOf(err) == class
	}
}

func (b *bed) suite() adaptertest.Bed {
	slot := func(ref adapter.CodeRef) int {
		n, err := strconv.Atoi(string(ref))
		if err != nil {
			b.Fatalf("the reference %q is no slot", ref)
		}
		return n
	}
	return adaptertest.Bed{
		Adapter: b.Adapter,
		Device:  b.ref,
		Timeout: testenv.Timeout(testenv.WaitTimeout),
		Memory: func(t testing.TB) (out []adaptertest.OnDevice) {
			for n, pin := range b.lock.State(t).Codes {
				out = append(out, adaptertest.OnDevice{Ref: adapter.CodeRef(strconv.Itoa(n)), PIN: pin})
			}
			return out
		},
		SetOnline: func(t testing.TB, online bool) {
			b.lock.SetOnline(t, online)
			b.until("zigbee2mqtt notices", func() bool {
				d, err := b.Device(b.Context(), b.ref)
				return err == nil && d.Online == online
			})
		},
		AddForeign: func(t testing.TB, _, pin string) adapter.CodeRef {
			n := b.lock.FreeSlot(t)
			b.lock.Program(t, n, pin)
			return adapter.CodeRef(strconv.Itoa(n))
		},
		ChangeForeign: func(t testing.TB, code adapter.CodeRef, pin string) { b.lock.Program(t, slot(code), pin) },
		DeleteForeign: func(t testing.TB, code adapter.CodeRef) { b.lock.Program(t, slot(code), "") },
		Enter:         b.lock.Enter,
		EnterWrong:    b.lock.Enter,
		LockByHand:    b.lock.LockByHand,
		Jam:           b.lock.Jam,
		Fill: func(t testing.TB) {
			codes := b.lock.State(t).Codes
			for n := 1; n < zigbee.Slots; n++ {
				if _, taken := codes[n]; !taken {
					b.lock.Program(t, n, strconv.Itoa(73100100+n))
				}
			}
		},
		Remove: func(t testing.TB) {
			b.lock.Leave(t)
			b.until("the lock is gone", func() bool {
				_, err := b.Device(b.Context(), b.ref)
				return err != nil && adapter.ClassOf(err) == adapter.NotFound
			})
		},
		Revoke: func(t testing.TB) {
			b.gateway.RemoveUser(t, b.user)
			b.until("the user is refused", b.fails(adapter.AuthRevoked))
		},
		DropNext:   func(t testing.TB) { b.lock.Drop(t, 1) },
		CutNext:    func(testing.TB) { b.proxy.muteAfter("/set") },
		Heal:       func(testing.TB) { b.proxy.mute(false) },
		Disconnect: func(testing.TB) { b.proxy.cut() },
		Stop: func(testing.TB) {
			b.proxy.stop()
			b.until("the broker is unreachable", b.fails(adapter.GatewayDown))
		},
	}
}

// locked is a writer for several goroutines.
type locked struct {
	mu sync.Mutex
	w  io.Writer
}

func (l *locked) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.w.Write(p)
}

// proxy forwards TCP connections, and simulates network failures.
type proxy struct {
	listener net.Listener
	to       string
	mu       sync.Mutex
	conns    []net.Conn
	muted    atomic.Bool
	trigger  atomic.Value // string
	lock     string
	requests atomic.Int64 // about the lock
	unmuted  chan struct{}
}

func newProxy(t *testing.T, to, lock string) *proxy {
	t.Helper()
	l, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	p := &proxy{
		listener: l,
		to:       to,
		lock:     lock,
		unmuted:  make(chan struct{}),
	}
	t.Cleanup(p.stop)
	go func() {
		for {
			in, err := l.Accept()
			if err != nil {
				return
			}
			out, err := net.Dial("tcp", to)
			if err != nil {
				in.Close()
				continue
			}
			p.mu.Lock()
			p.conns = append(p.conns, in, out)
			p.mu.Unlock()
			go p.pass(out, in, false)
			go p.pass(in, out, true)
		}
	}()
	return p
}

func (p *proxy) address() string { return p.listener.Addr().String() }

func (p *proxy) pass(to, from net.Conn, answers bool) {
	defer to.Close()
	defer from.Close()
	buffer := make([]byte, 32<<10)
	for {
		n, err := from.Read(buffer)
		if err != nil {
			return
		}
		for answers && p.muted.Load() {
			p.mu.Lock()
			unmuted := p.unmuted
			p.mu.Unlock()
			<-unmuted
		}
		if !answers {
			p.requests.Add(int64(bytes.Count(buffer[:n], []byte(p.lock+"/get")) + bytes.Count(buffer[:n],
				[]byte(p.lock+"/set"))))
		}
		if _, err := to.Write(buffer[:n]); err != nil {
			return
		}
		if trigger, ok := p.trigger.Load().(string); !answers && ok && trigger != "" &&
			bytes.Contains(buffer[:n], []byte(trigger)) {
			p.trigger.Store("")
			p.mute(true)
		}
	}
}

// muteAfter blocks the broker's messages after a message with the text was sent to it.
func (p *proxy) muteAfter(text string) { p.trigger.Store(text) }

// mute blocks the broker's messages.
func (p *proxy) mute(muted bool) {
	p.muted.Store(muted)
	p.mu.Lock()
	defer p.mu.Unlock()
	close(p.unmuted)
	p.unmuted = make(chan struct{})
}

// cut closes the existing connections.
func (p *proxy) cut() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, c := range p.conns {
		c.Close()
	}
	p.conns = nil
}

// stop closes the connections and accepts no more.
func (p *proxy) stop() {
	p.listener.Close()
	p.mute(false)
	p.cut()
}
