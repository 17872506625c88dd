package ttlock_test

import (
	"context"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"
	"time"

	"github.com/deviceaccess/terraform-provider-deviceaccess/server/adapter"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/adapter/adaptertest"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/adapter/ttlock"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/adapter/ttlock/ttlocktest"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/adapter/vendorhttp"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/app/apptest"
)

func TestMain(m *testing.M) { apptest.Main(m) }

// budget is an adapter.Budget that records refusals.
type budget struct {
	adapter.Unlimited
	mu      sync.Mutex
	refused []time.Duration
}

func (b *budget) ClientRefused(_ context.Context, wait time.Duration) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.refused = append(b.refused, wait)
}

// account is a cloud and an adapter of its account, which receives the pushes.
type account struct {
	cloud   *ttlocktest.Server
	adapter *ttlock.Adapter
	budget  *budget
	secrets *adaptertest.Secrets
}

var client = adapter.Client{ID: ttlocktest.ClientID, Secret: ttlocktest.ClientSecret}

// connection returns a connection with the account's login.
func connection(t *testing.T, cloud *ttlocktest.Server) *ttlock.Connection {
	t.Helper()
	c := ttlock.VendorAt(cloud.URL).New().(*ttlock.Connection)
	err := c.Apply(adapter.Settings{"username": ttlocktest.Username, "password": ttlocktest.Password})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func connect(t *testing.T, o ttlocktest.Options) *account {
	t.Helper()
	a := &account{cloud: ttlocktest.Start(t, o), budget: &budget{}}
	found, err := connection(t, a.cloud).Check(t.Context(), adapter.Env{Client: client})
	if err != nil {
		t.Fatal(err)
	}
	a.secrets = &adaptertest.Secrets{Values: map[string][]byte{adapter.CredentialsSecret: found.Credentials}}
	a.adapter = ttlock.New(ttlock.Config{
		BaseURL: a.cloud.URL,
		Client:  client,
		Secrets: a.secrets,
		Budget:  a.budget,
		HTTP:    vendorhttp.New(adapter.Env{}),
	})
	receiver := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		push, err := ttlock.Vendor().AppPush(r)
		if err != nil {
			http.Error(w, "bad", http.StatusBadRequest)
			return
		}
		for _, e := range push.Events {
			a.adapter.ReceiveEvent(e.Event)
		}
		_, _ = io.WriteString(w, push.Response)
	}))
	t.Cleanup(func() {
		_ = a.adapter.Close()
		a.cloud.WaitForPushes()
		receiver.Close()
	})
	a.cloud.SetPushURL(receiver.URL)
	return a
}

func (a *account) lock(n int) adapter.DeviceRef { return adapter.DeviceRef(a.cloud.ID(n)) }

// tried is an adapter whose new codes are entered at the keypad at once, so that the cloud pushes a record.
type tried struct {
	*ttlock.Adapter
	cloud *ttlocktest.Server
}

func (a tried) PutCode(
	ctx context.Context, device adapter.DeviceRef, spec adapter.CodeSpec,
) (adapter.PutResult, error) {
	result, err := a.Adapter.PutCode(ctx, device, spec)
	if err == nil {
		a.cloud.EnterPIN(0, spec.PIN)
	}
	return result, err
}

// errcodes are the errors of the vendor for classes.
var errcodes = map[adapter.Class]int{
	adapter.Transient:   -3003,
	adapter.Offline:     -3002,
	adapter.Duplicate:   -3007,
	adapter.Full:        -3009,
	adapter.Invalid:     -3006,
	adapter.AuthRevoked: 10004,
}

func (a *account) bed(kind ttlocktest.Kind) adaptertest.Bed {
	c := a.cloud
	bed := adaptertest.Bed{
		Adapter: tried{a.adapter, c},
		Device:  a.lock(0),
		Memory: func(testing.TB) (out []adaptertest.OnDevice) {
			for _, code := range c.Codes(0) {
				one := adaptertest.OnDevice{Ref: ref(code), PIN: code.PIN, Name: code.Name}
				if !code.Start.IsZero() {
					one.StartsAt, one.EndsAt = &code.Start, &code.End
				}
				out = append(out, one)
			}
			return out
		},
		SetOnline: func(t testing.TB, online bool) {
			c.SetOnline(0, online)
			if kind == ttlocktest.Gateway { // the pushes about gateways name no lock
				if _, err := a.adapter.Devices(t.Context()); err != nil {
					t.Error(err)
				}
			}
		},
		// The app pushes nothing about codes: the use of one does.
		AddForeign: func(_ testing.TB, name, pin string) adapter.CodeRef {
			id := c.AddCode(0, name, pin)
			c.EnterPIN(0, pin)
			return adapter.CodeRef(id)
		},
		ChangeForeign: func(_ testing.TB, code adapter.CodeRef, pin string) {
			c.ChangeCode(0, string(code), pin)
			c.EnterPIN(0, pin)
		},
		DeleteForeign: func(_ testing.TB, code adapter.CodeRef) {
			c.DeleteCode(0, string(code))
			c.EnterPIN(0, "0000")
		},
		Enter: func(t testing.TB, pin string) {
			if !c.EnterPIN(0, pin) {
				t.Error("the door stays closed")
			}
		},
		EnterWrong: func(_ testing.TB, pin string) { c.EnterPIN(0, pin) },
		LockByHand: func(testing.TB) { c.LockByHand(0) },
		Fill:       func(testing.TB) { c.Fill(0) },
		Remove:     func(testing.TB) { c.Remove(0) },
		Revoke:     func(testing.TB) { c.Revoke() },
		DropNext:   func(testing.TB) { c.DropNext() },
		CutNext:    func(testing.TB) { c.CutNext() },
		LoseNext:   func(testing.TB) { c.LoseNext() },
		FailNext:   func(_ testing.TB, class adapter.Class) { c.RefuseAll(errcodes[class]) },
		Heal:       func(testing.TB) { c.Heal() },
		Disconnect: func(testing.TB) { c.CloseClientConnections() },
		Stall:      func(testing.TB) { c.Stall() },
		Stop:       func(testing.TB) { c.Close() },
	}
	if kind == ttlocktest.NBIoT || kind == ttlocktest.SavingWiFi {
		bed.BreakNext = func(testing.TB) { c.FailNext() }
	}
	if kind == ttlocktest.NBIoT { // the cloud does not say whether such a lock is online
		bed.SetOnline = nil
	}
	return bed
}

// TestConformance runs the suite for each kind of connection, with a list that is old after writes and with repeated
// pushes.
func TestConformance(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		kind ttlocktest.Kind
		o    ttlocktest.Options
	}{
		"gateway":             {kind: ttlocktest.Gateway},
		"WiFi":                {kind: ttlocktest.WiFi},
		"WiFi, saving power":  {kind: ttlocktest.SavingWiFi},
		"NB-IoT":              {kind: ttlocktest.NBIoT},
		"troubled":            {o: ttlocktest.Options{DuplicatePushes: true, Lag: 2, RotateRefresh: true}},
		"incomplete keyboard": {o: ttlocktest.Options{Locks: []ttlocktest.Lock{{Features: "1000000000000091"}}}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			adaptertest.Run(t, func(t *testing.T) adaptertest.Bed {
				o := c.o
				if o.Locks == nil {
					o.Locks = []ttlocktest.Lock{{Kind: c.kind}}
				}
				return connect(t, o).bed(c.kind)
			})
		})
	}
}

func ref(c ttlocktest.Code) adapter.CodeRef {
	data, _ := json.Marshal(c.ID) // of a number
	return adapter.CodeRef(data)
}
