package seam_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/deviceaccess/terraform-provider-deviceaccess/api"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/adapter"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/adapter/adaptertest"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/adapter/seam"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/app/apptest"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/domain"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/sandbox"
	"github.com/deviceaccess/terraform-provider-deviceaccess/test/conformance"
	"github.com/deviceaccess/terraform-provider-deviceaccess/test/gateways"
)

func TestMain(m *testing.M) { apptest.Main(m) }

// TestConformance runs the suite over this server in another process as upstream, for every profile of the sandbox.
func TestConformance(t *testing.T) {
	t.Parallel()
	for _, profile := range sandbox.Profiles() {
		t.Run(profile, func(t *testing.T) {
			t.Parallel()
			adaptertest.Run(t, func(t *testing.T) adaptertest.Bed { return newBed(t, profile).bed() })
		})
	}
}

// bed is an upstream workspace with one simulated lock, an adapter for it, and a proxy between both.
type bed struct {
	t       *testing.T
	up      *apptest.Server // the upstream workspace
	lock    *apptest.Lock
	device  string
	revoke  func()
	proxy   *proxy
	server  *httptest.Server
	adapter *seam.Adapter
	offline bool
}

func newBed(t *testing.T, profile string) *bed {
	t.Helper()
	b := &bed{t: t, up: apptest.SharedProcess(t, apptest.WithProfiles(profile))}
	b.device = b.up.Device(t, profile)
	b.lock = b.up.Lock(t, b.device)
	token, revoke := b.up.NewKey(t, "downstream")
	b.revoke = revoke
	b.proxy = newProxy(t, b.up.URL)
	b.server = httptest.NewServer(b.proxy)
	t.Cleanup(b.server.Close)
	t.Cleanup(b.proxy.heal)
	b.adapter = seam.New(seam.Config{
		BaseURL:      b.server.URL,
		APIKey:       token,
		PollInterval: 100 * time.Millisecond,
		Secrets:      &adaptertest.Secrets{},
	})
	b.adapter.Listen()
	if e := <-b.adapter.Events(); e.Kind != adapter.Resync { // later events come from the upstream server
		t.Fatalf("the first event is %+v", e)
	}
	return b
}

// proxy passes requests to the upstream server, judges them, and disturbs them.
type proxy struct {
	t    *testing.T
	next *httputil.ReverseProxy

	mu      sync.Mutex
	class   adapter.Class // of all failures
	cut     bool          // lose the answers to creations
	lose    bool          // lose creations
	paths   map[string]bool
	stalled chan struct{}
}

func newProxy(t *testing.T, upstream string) *proxy {
	t.Helper()
	to, err := url.Parse(upstream)
	if err != nil {
		t.Fatal(err)
	}
	next := httputil.NewSingleHostReverseProxy(to)
	next.ErrorLog = log.New(io.Discard, "", 0)
	return &proxy{t: t, next: next, paths: map[string]bool{}}
}

// judged returns the URL of a proxy that judges the requests to an upstream server.
func judged(t *testing.T, upstream string) string {
	t.Helper()
	server := httptest.NewServer(newProxy(t, upstream))
	t.Cleanup(server.Close)
	return server.URL
}

// writes returns the paths of requests that changed something upstream.
func (p *proxy) writes() (paths []string) {
	p.set(func() {
		for path := range p.paths {
			if !strings.HasSuffix(path, "/list") && !strings.HasSuffix(path, "/get") {
				paths = append(paths, path)
			}
		}
	})
	slices.Sort(paths)
	return paths
}

func (p *proxy) set(change func()) {
	p.mu.Lock()
	defer p.mu.Unlock()
	change()
}

func (p *proxy) heal() {
	p.set(func() {
		p.class, p.cut, p.lose = "", false, false
		if p.stalled != nil {
			close(p.stalled)
			p.stalled = nil
		}
	})
}

// failures are answers of the API by class. Only those to creations have the classes of codes.
var failures = map[adapter.Class]struct {
	status int
	kind   string
	all    bool
}{
	adapter.Transient:   {http.StatusServiceUnavailable, "service_unavailable", true},
	adapter.AuthRevoked: {http.StatusUnauthorized, "unauthorized", true},
	adapter.Offline:     {http.StatusBadRequest, "device_offline", false},
	adapter.Duplicate:   {http.StatusConflict, "duplicate_access_code", false},
	adapter.Full:        {http.StatusBadRequest, "no_space_for_access_code_on_device", false},
	adapter.Invalid:     {http.StatusBadRequest, "invalid_input", false},
}

// judge is the published description; nil if it is missing and not required.
var judge = sync.OnceValues(func() (*conformance.Checker, error) {
	required := os.Getenv("REQUIRE_ALL") == "1"
	c, err := conformance.Open(context.Background(), required)
	if errors.Is(err, gateways.ErrMissing) && !required {
		return nil, nil
	}
	return c, err
})

func checkRequest(t *testing.T, path string, body []byte) {
	t.Helper()
	checker, err := judge()
	if err != nil {
		t.Error(err)
	}
	if checker == nil {
		return
	}
	for _, complaint := range checker.CheckRequest(path, body) {
		if !isExcused(complaint, body) {
			t.Error(complaint)
		}
	}
}

// excuses are identifiers in requests of tests that violate the published description, with the reason.
var excuses = []struct {
	identifier *regexp.Regexp
	reason     string
}{
	{regexp.MustCompile(`^[0-9a-f-]{36}0$`), "the suite derives an unknown device from a known one"},
	{regexp.MustCompile(`^(any|absent)$`), "tests ask for something that does not exist"},
	{regexp.MustCompile(`^[a-z]+(_[a-z]+)*_?[0-9]+$`), "the vendor's test server issues such identifiers"},
}

// isExcused reports whether a complaint is about an identifier of excuses.
func isExcused(complaint string, body []byte) bool {
	field, ok := strings.CutSuffix(complaint, ": is no uuid")
	var params map[string]any
	if !ok || json.Unmarshal(body, &params) != nil {
		return false
	}
	value, _ := params[field[strings.LastIndex(field, "/")+1:]].(string)
	for _, e := range excuses {
		if e.identifier.MatchString(value) {
			return true
		}
	}
	return false
}

func (p *proxy) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return
	}
	checkRequest(p.t, r.URL.Path, body)
	p.mu.Lock()
	p.paths[r.URL.Path] = true
	class, cut, lose, stalled := p.class, p.cut, p.lose, p.stalled
	p.mu.Unlock()
	creation := r.URL.Path == "/access_codes/create"
	f := failures[class]
	switch {
	case stalled != nil:
		select {
		case <-stalled:
		case <-r.Context().Done():
		}
		return
	case f.kind != "" && (f.all || creation):
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(f.status)
		io.WriteString(w, `{"ok":false,"error":{"type":"`+f.kind+`","message":"A test."}}`)
		return
	}
	r.Body, r.ContentLength = io.NopCloser(bytes.NewReader(body)), int64(len(body))
	if lose && creation {
		panic(http.ErrAbortHandler)
	}
	if cut && creation {
		p.next.ServeHTTP(httptest.NewRecorder(), r)
		panic(http.ErrAbortHandler)
	}
	p.next.ServeHTTP(w, r)
}

// codes returns all codes that the upstream server has of the lock, by PIN.
func (b *bed) codes() (all []adaptertest.OnDevice) {
	b.t.Helper()
	var managed api.AccessCodesResponse
	b.post("/access_codes/list", map[string]any{"device_id": b.device}, &managed)
	for _, c := range managed.AccessCodes {
		all = append(all, adaptertest.OnDevice{
			Ref:      adapter.CodeRef(c.AccessCodeID),
			PIN:      domain.Value(c.Code),
			Name:     domain.Value(c.Name),
			StartsAt: c.StartsAt,
			EndsAt:   c.EndsAt,
		})
	}
	for _, c := range b.up.UnmanagedCodes(b.t, b.device) {
		all = append(
			all,
			adaptertest.OnDevice{
				Ref:  adapter.CodeRef(c.AccessCodeID),
				PIN:  domain.Value(c.Code),
				Name: domain.Value(c.Name),
			},
		)
	}
	return all
}

func (b *bed) post(path string, body, out any) {
	b.t.Helper()
	if status := b.up.Post(b.t, path, body, out); status != http.StatusOK {
		b.t.Fatalf("%s: %d", path, status)
	}
}

// memory returns the codes in the memory of the lock, and the codes that the upstream server programs later.
func (b *bed) memory(t testing.TB) (out []adaptertest.OnDevice) {
	on := b.lock.Memory(t)
	for _, c := range b.codes() {
		there := c.StartsAt != nil && c.StartsAt.After(time.Now())
		for _, m := range on {
			// Unmanaged codes may hide their PIN.
			there = there || m.PIN == c.PIN || c.PIN == "" && m.Name == c.Name
		}
		if there {
			out = append(out, c)
		}
	}
	return out
}

// addForeign adds a code at the keypad, and returns it once the upstream server has read it.
func (b *bed) addForeign(t testing.TB, name, pin string) adapter.CodeRef {
	if b.offline {
		t.Skip("the upstream server identifies the codes of an offline device later")
	}
	var made api.UnmanagedAccessCodeResponse
	b.post(
		"/access_codes/simulate/create_unmanaged_access_code",
		map[string]any{"device_id": b.device, "name": name, "code": pin},
		&made,
	)
	return adapter.CodeRef(made.AccessCode.AccessCodeID)
}

func (b *bed) bed() adaptertest.Bed {
	bed := b.functions()
	d, err := b.adapter.Device(b.t.Context(), bed.Device)
	if err != nil {
		b.t.Fatal(err)
	}
	if d.Capabilities.ProviderPIN { // no client can choose a PIN
		bed.ChangeForeign = nil
	}
	return bed
}

func (b *bed) functions() adaptertest.Bed {
	return adaptertest.Bed{
		Adapter: b.adapter,
		Device:  adapter.DeviceRef(b.device),
		Memory:  b.memory,
		SetOnline: func(t testing.TB, online bool) {
			what := "/offline"
			if online {
				what = "/online"
			}
			b.lock.Control(t, http.MethodPost, what, struct{}{})
			b.offline = !online
		},
		AddForeign: b.addForeign,
		// Another client of the upstream server changes the code. It repairs changes at the keypad itself.
		ChangeForeign: func(_ testing.TB, code adapter.CodeRef, pin string) {
			b.post("/access_codes/update", map[string]any{"access_code_id": code, "code": pin}, nil)
		},
		DeleteForeign: func(_ testing.TB, code adapter.CodeRef) {
			b.post("/access_codes/delete", map[string]any{"access_code_id": code}, nil)
		},
		Enter: func(t testing.TB, pin string) {
			apptest.Until(t, "the code opens the door", func() bool {
				var out struct {
					Unlocked bool `json:"unlocked"`
				}
				b.lock.Enter(t, pin, &out)
				return out.Unlocked
			})
		},
		EnterWrong: func(t testing.TB, pin string) { b.lock.Enter(t, pin, nil) },
		LockByHand: func(t testing.TB) { b.lock.Control(t, http.MethodPost, "/keypad/lock", struct{}{}) },
		Jam: func(t testing.TB) {
			b.lock.Control(t, http.MethodPost, "/jam", map[string]bool{"jammed": true})
		},
		Remove: func(t testing.TB) {
			b.lock.Control(t, http.MethodPost, "/remove", struct{}{})
			apptest.Until(t, "the upstream server notices the removal", func() bool {
				return b.up.Post(t, "/devices/get", map[string]any{"device_id": b.device}, nil) == http.StatusNotFound
			})
		},
		Fill: func(t testing.TB) {
			b.lock.Control(t, http.MethodPut, "/faults", sandbox.Faults{SlotsTaken: 1000})
		},
		Revoke:     func(testing.TB) { b.revoke() },
		CutNext:    func(testing.TB) { b.proxy.set(func() { b.proxy.cut = true }) },
		LoseNext:   func(testing.TB) { b.proxy.set(func() { b.proxy.lose = true }) },
		FailNext:   func(_ testing.TB, class adapter.Class) { b.proxy.set(func() { b.proxy.class = class }) },
		Heal:       func(testing.TB) { b.proxy.heal() },
		Disconnect: func(testing.TB) { b.server.CloseClientConnections() },
		Stall:      func(testing.TB) { b.proxy.set(func() { b.proxy.stalled = make(chan struct{}) }) },
		Stop: func(testing.TB) {
			b.server.CloseClientConnections()
			b.server.Close()
		},
	}
}
