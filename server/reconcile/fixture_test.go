package reconcile_test

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/deviceaccess/terraform-provider-deviceaccess/server/access"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/account"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/adapter"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/adapter/devicecloud"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/device"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/domain"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/domain/capability"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/encryption"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/event"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/keyrotation"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/lockstate"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/noise"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/noisesensor"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/reconcile"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/sandbox"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/store"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/store/storetest"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/worker"
	"github.com/deviceaccess/terraform-provider-deviceaccess/test/testenv"
)

func TestMain(m *testing.M) { storetest.Main(m, store.Migrate, store.MigrationsVersion()) }

// bed is a reconciler with a simulated cloud and one lock.
type bed struct {
	http *http.Client
	*testing.T
	access     *access.Services
	rec        *reconcile.Reconciler
	db         *store.DB
	waker      *worker.Waker
	keys       *encryption.Keys
	cloud      *httptest.Server
	token      string
	lock       string // the cloud's identifier
	p          domain.Principal
	device     string
	account    uuid.UUID
	stopEngine func()
	watch      func(worker.Lane) worker.Lane // wraps each lane; nil: no wrapper
	log        io.Writer
}

type options struct {
	profile string
	speed   float64 // of the simulated cloud; 0: 50
	access  access.Options
	http    *http.Client                                                 // of the adapter; nil: its own
	vendor  func(w http.ResponseWriter, r *http.Request) (answered bool) // runs before the cloud; nil: none
	log     io.Writer                                                    // nil: the test's log
	db      *store.DB                                                    // nil: database
}

// start returns a bed whose engine has read the lock.
func start(t *testing.T, o options) *bed {
	t.Helper()
	b := prepare(t, o)
	b.startEngine()
	b.until("the device appears", func() bool {
		ds, _, err := b.access.Devices.ListDevices(t.Context(), b.p, device.Filter{}, domain.Page{Limit: 10})
		b.must(err)
		if len(ds) == 1 {
			b.device = ds[0].ID.String()
		}
		return len(ds) == 1
	})
	b.until("the codes are read", func() bool { return len(b.unmanaged()) == len(b.memory()) })
	return b
}

// prepare returns a bed without an engine. Its account has not been listed.
func prepare(t *testing.T, o options) *bed {
	t.Helper()
	b := &bed{T: t, http: o.http, log: o.log}
	if b.log == nil {
		b.log = t.Output()
	}
	ctx := t.Context()
	if b.db = o.db; b.db == nil {
		b.db = database(t)
	}
	var err error
	b.keys, err = encryption.New(encryption.NewMaster())
	b.must(err)
	b.must(keyrotation.FollowKeys(ctx, b.db, b.keys, true))
	box := sandbox.New(sandbox.Options{Seed: 7, Speed: cmp.Or(o.speed, 50)})
	t.Cleanup(box.Close)
	made, err := box.EnsureAccount(sandbox.AccountSpec{Key: "a", Profiles: []string{o.profile}})
	b.must(err)
	b.token, b.lock = made.Token, made.Locks[0].ID
	b.cloud = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if o.vendor == nil || !o.vendor(w, r) {
			box.Handler().ServeHTTP(w, r)
		}
	}))
	t.Cleanup(b.cloud.Close)
	b.waker, err = worker.NewWaker(b.db)
	b.must(err)
	b.access = access.New(b.db, b.keys, b.waker, o.access)
	w, err := b.access.Accounts.CreateWorkspace(ctx, "w", "c", true)
	b.must(err)
	b.p = domain.Principal{WorkspaceID: w.ID}
	b.account, err = b.access.Accounts.ConnectAccount(ctx, account.NewAccount{
		WorkspaceID: w.ID,
		Adapter:     account.SandboxAdapter,
		DisplayName: "locks",
		Config:      json.RawMessage(`{}`),

		Capabilities: []string{"lock", "noise_sensor", "thermostat"},
	})
	b.must(err)
	return b
}

// startEngine runs the workers of a server until the test ends.
func (b *bed) startEngine() {
	b.Helper()
	// Pushes arrive at a separate listener, as in the application.
	var receive http.HandlerFunc
	push := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { receive(w, r) }))
	log := slog.New(slog.NewTextHandler(b.log, &slog.HandlerOptions{Level: slog.LevelInfo}))
	adapters := reconcile.NewAdapters(b.access, map[string]reconcile.Opener{
		account.SandboxAdapter: func(ctx context.Context, _ account.Account) (adapter.Adapter, error) {
			a := devicecloud.New(devicecloud.Config{
				BaseURL: b.cloud.URL,
				Token:   b.token,
				PushURL: push.URL,
				HTTP:    b.http,
			})
			receive = a.Receive
			return a, a.Subscribe(ctx)
		},
	}, log)
	b.rec = reconcile.New(b.access, adapters, reconcile.Options{Log: log})
	lanes := b.rec.Lanes()
	for n := range lanes {
		if b.watch != nil {
			lanes[n] = b.watch(lanes[n])
		}
	}
	engine, err := worker.NewEngine(b.waker, worker.Options{
		Sweep:    100 * time.Millisecond,
		LeaseTTL: 2 * time.Second,
		Workers:  20,
		Log:      slog.New(slog.DiscardHandler),
	}, lanes...)
	b.must(err)
	b.must(engine.Start(b.Context()))
	stopped := false
	b.stopEngine = func() {
		if stopped {
			return
		}
		stopped = true
		ctx, cancel := context.WithTimeout(context.Background(), testenv.Timeout(time.Minute))
		defer cancel()
		if err := engine.Stop(ctx); err != nil {
			b.Errorf("stop the engine: %v", err)
		}
		if err := adapters.Close(); err != nil {
			b.Errorf("close the adapters: %v", err)
		}
		push.Close()
	}
	b.Cleanup(b.stopEngine)
}

func (b *bed) must(err error) {
	b.Helper()
	if err != nil {
		b.Fatal(err)
	}
}

// until waits for a condition.
func (b *bed) until(what string, ok func() bool) {
	b.Helper()
	testenv.UntilOr(b, what, ok, b.state)
}

// gate waits until a channel is closed or the test ends. It may run outside the test's goroutine.
func (b *bed) gate(c <-chan struct{}) {
	select {
	case <-c:
	case <-time.After(testenv.Timeout(testenv.WaitTimeout)):
		b.Error("timed out waiting at a gate")
	case <-b.Context().Done():
	}
}

// codeOnLock is a code in the lock's memory.
type codeOnLock struct {
	ID   string `json:"access_code_id"`
	Code string `json:"code"`
	Name string `json:"name"`
}

// memory reads the codes in the lock's memory.
func (b *bed) memory() []codeOnLock {
	b.Helper()
	var out struct {
		Codes []codeOnLock `json:"access_codes"`
	}
	b.must(json.Unmarshal(b.control(http.MethodGet, "memory", nil), &out))
	return out.Codes
}

func (b *bed) onLock(pin string) bool {
	for _, c := range b.memory() {
		if c.Code == pin {
			return true
		}
	}
	return false
}

// opens enters a PIN at the keypad.
func (b *bed) opens(pin string) bool {
	b.Helper()
	var out struct {
		Unlocked bool `json:"unlocked"`
	}
	b.must(json.Unmarshal(b.control(http.MethodPost, "keypad/enter", map[string]string{"code": pin}), &out))
	return out.Unlocked
}

// control changes a setting of the simulated lock.
func (b *bed) control(method, what string, body any) []byte {
	b.Helper()
	raw, err := json.Marshal(body)
	b.must(err)
	req, err := http.NewRequestWithContext(b.Context(), method, b.cloud.URL+"/sandbox/locks/"+b.lock+"/"+what,
		bytes.NewReader(raw))
	b.must(err)
	req.Header.Set("Authorization", "Bearer "+b.token)
	req.Header.Set("Content-Type", "application/json")
	res, err := http.DefaultClient.Do(req)
	b.must(err)
	defer res.Body.Close()
	out, err := io.ReadAll(res.Body)
	b.must(err)
	if res.StatusCode >= 300 {
		b.Fatalf("%s %s: %s %s", method, what, res.Status, out)
	}
	return out
}

func (b *bed) unmanaged() []device.Code {
	b.Helper()
	cs, _, err := b.access.Devices.ListCodes(
		b.Context(),
		b.p,
		device.CodeFilter{DeviceID: b.device},
		domain.Page{Limit: 1000},
	)
	b.must(err)
	return cs
}

func (b *bed) create(pin string) (device.Code, device.Attempt) {
	b.Helper()
	c, a, err := b.access.Devices.CreateCode(b.Context(), b.p, device.NewCode{
		DeviceID:         b.device,
		PIN:              pin,
		NativeScheduling: true,
		EvenIfOffline:    true,
	})
	b.must(err)
	return c, a
}

func (b *bed) code(id uuid.UUID) device.Code {
	b.Helper()
	c, err := b.access.Devices.GetCode(b.Context(), b.p, true, id.String(), "", "")
	b.must(err)
	return c
}

func (b *bed) attempt(a device.Attempt) device.Attempt {
	b.Helper()
	got, err := b.access.Devices.GetAttempt(b.Context(), b.p, a.ID.String())
	b.must(err)
	return got
}

// state logs the rows of the device, for a test that timed out.
func (b *bed) state() {
	var rows, device string
	ctx := context.WithoutCancel(b.Context())
	err := b.db.Pool.QueryRow(ctx, `select coalesce(jsonb_agg(to_jsonb(c) - 'pin_sealed' - 'pin_mac' || coalesce(to_jsonb(a), '{}')), '[]')::text
		from access_codes c left join action_attempts a on a.access_code_id = c.access_code_id and a.status = 'pending'
		where is_managed and (c.status <> 'set' or a.status = 'pending')`).
		Scan(&rows)
	if err == nil {
		err = b.db.Pool.QueryRow(ctx, `select coalesce(jsonb_agg(to_jsonb(d) - 'capabilities'), '[]')::text from devices d`).
			Scan(&device)
	}
	b.Logf("managed codes: %s\ndevice: %s (%v)", rows, device, err)
}

// ended waits until an attempt has finished.
func (b *bed) ended(a device.Attempt) device.Attempt {
	b.Helper()
	b.until("attempt "+a.Type+" ends", func() bool { a = b.attempt(a); return a.Status != device.Pending })
	return a
}

// succeeded waits until an attempt has succeeded.
func (b *bed) succeeded(a device.Attempt) {
	b.Helper()
	if a = b.ended(a); a.Status != device.Succeeded {
		b.Fatalf("%s: %s %s", a.Type, a.ErrorType, a.Message)
	}
}

// told lists the events with the given types, oldest first.
func (b *bed) told(types ...string) (out []string) {
	b.Helper()
	for _, e := range b.tales(types...) {
		out = append(out, e.Type)
	}
	return out
}

// fields returns the fields of an event.
func (b *bed) fields(e event.Event) (fields map[string]any) {
	b.Helper()
	b.must(json.Unmarshal(e.Fields, &fields))
	return fields
}

// tales lists the events with the given types, oldest first.
func (b *bed) tales(types ...string) []event.Event {
	b.Helper()
	es, err := b.access.Events.ListEvents(
		b.Context(),
		b.p,
		event.Filter{Since: "2020-01-01", Types: types, Limit: 1000},
	)
	b.must(err)
	return es
}

// events lists the types of a code's events, oldest first.
func (b *bed) events(code uuid.UUID) []string {
	b.Helper()
	id := []string{code.String()}
	es, err := b.access.Events.ListEvents(
		b.Context(),
		b.p,
		event.Filter{Since: "2020-01-01", CodeIDs: &id, Limit: 100},
	)
	b.must(err)
	var types []string
	for _, e := range es {
		types = append(types, e.Type)
	}
	return types
}

// byHand is a bed without an engine. The test decides what a read of the device returns, what
// becomes of writes, and in which order.
type byHand struct{ *bed }

// holder is an undisputed lease.
type holder struct{}

func (holder) Check(context.Context, store.Tx) error { return nil }

func hand(t *testing.T, o options) byHand {
	t.Helper()
	b := prepare(t, o)
	h := byHand{b}
	b.must(b.access.Devices.RecordDevices(t.Context(), holder{}, b.account, []device.FoundDevice{b.described()}))
	known, _, err := b.access.Devices.ListDevices(t.Context(), b.p, device.Filter{}, domain.Page{Limit: 10})
	b.must(err)
	b.device = known[0].ID.String()
	_, err = b.db.Pool.Exec(
		t.Context(),
		"update devices set empty_since = $1",
		b.access.Devices.Now().Add(-time.Minute),
	)
	b.must(err)
	h.read() // the confirmed empty list
	return h
}

// described returns the first device as its vendor describes it.
func (b *bed) described() device.FoundDevice {
	b.Helper()
	cloud := devicecloud.New(devicecloud.Config{BaseURL: b.cloud.URL, Token: b.token})
	defer func() { b.must(cloud.Close()) }()
	devices, err := cloud.Devices(b.Context())
	b.must(err)
	return reconcile.Describe(devices[0], capability.Set{Simulated: true}, b.access.Devices.Now())
}

// readThresholds records a read of the noise sensor.
func (b *bed) readThresholds(o noise.Observed) {
	b.Helper()
	known, _, err := b.access.Devices.ListDevices(b.Context(), b.p, device.Filter{}, domain.Page{Limit: 1})
	b.must(err)
	_, err = b.access.NoiseSensors.Observe(b.Context(), holder{}, known[0].ID, noisesensor.Read{
		Observed: o,
		Asked:    b.access.Devices.Now(),
	})
	b.must(err)
}

func (b byHand) id() uuid.UUID { return uuid.MustParse(b.device) }

// nothing leaves the pass open.
func nothing(device.Work) device.Next { return device.Next{} }

func (b byHand) advance(r device.Report, next func(device.Work) device.Next) (device.Work, *device.CodeOperation) {
	b.Helper()
	w, op, err := b.access.Devices.Advance(b.Context(), holder{}, b.id(), r, next)
	b.must(err)
	return w, op
}

// plan is what the device needs.
type plan struct {
	device.Work

	Codes []work
}

func (b byHand) look() plan {
	b.Helper()
	w, _ := b.advance(device.Report{}, nothing)
	p := plan{Work: w}
	for _, op := range w.Operations {
		p.Codes = append(p.Codes, b.toWork(op))
	}
	return p
}

// work is the next operation of a code.
type work struct {
	lockstate.Operation

	ID  uuid.UUID
	PIN string
	op  *device.CodeOperation
}

// toWork returns an operation with its digits.
func (b byHand) toWork(op lockstate.Operation) work {
	b.Helper()
	w := work{Operation: op, ID: op.Code, op: &device.CodeOperation{Operation: op}}
	if op.PIN != "" {
		var sealed []byte
		b.must(
			b.db.Pool.QueryRow(b.Context(), "select pin_sealed from access_codes where access_code_id = $1", op.Code).
				Scan(&sealed),
		)
		pin, err := b.keys.Open("access_codes.pin/"+op.Code.String(), sealed)
		b.must(err)
		w.PIN = string(pin)
	}
	return w
}

func (b byHand) work(c device.Code) work {
	b.Helper()
	for _, w := range b.look().Codes {
		if w.ID == c.ID {
			return w
		}
	}
	return work{}
}

// shown is one observed code of a device.
type shown struct {
	Ref, Key, PIN, Name string
	Confirmed, Disabled bool
	StartsAt, EndsAt    *time.Time
}

// read records what a read of the device has found.
func (b byHand) read(found ...shown) {
	b.Helper()
	b.must(b.observed(b.look().Seq, found))
}

func (b byHand) observed(seq int64, found []shown) error {
	r := device.Report{Seq: seq, Read: true}
	for _, f := range found {
		r.Found = append(r.Found, device.Found{Key: f.Key, PIN: f.PIN, Found: lockstate.Found{
			Ref: f.Ref, Name: f.Name, Confirmed: f.Confirmed, Disabled: f.Disabled,
			StartsAt: f.StartsAt, EndsAt: f.EndsAt,
		}})
	}
	_, _, err := b.access.Devices.Advance(b.Context(), holder{}, b.id(), r, nothing)
	return err
}

// started starts an operation. It reports whether the code still needs it.
func (b byHand) started(w work) (bool, error) {
	_, op, err := b.access.Devices.Advance(b.Context(), holder{}, b.id(), device.Report{},
		func(device.Work) device.Next { return device.Next{Start: &w.Operation} })
	if op != nil {
		*w.op = *op
	}
	return op != nil, err
}

func (b byHand) begin(w work) {
	b.Helper()
	w.Action, w.op.Action = lockstate.Put, lockstate.Put
	still, err := b.started(w)
	b.must(err)
	if !still {
		b.Fatal("the write is not wanted")
	}
}

// outcome is the outcome of an operation.
type outcome struct {
	Ref, PIN  string
	Confirmed bool
	Failure   *lockstate.Failure
}

func (b byHand) put(w work, o outcome) error {
	op := w.op
	_, _, err := b.access.Devices.Advance(
		b.Context(),
		holder{},
		b.id(),
		device.Report{Operation: op, Outcome: device.Outcome{
			PIN:     o.PIN,
			Outcome: lockstate.Outcome{Ref: o.Ref, Confirmed: o.Confirmed, Failure: o.Failure},
		}},
		nothing,
	)
	return err
}

func (b byHand) removal(w work, confirmed bool, failure *lockstate.Failure) error {
	return b.put(w, outcome{Confirmed: confirmed, Failure: failure})
}

func (b byHand) place(w work, ref string) error {
	return b.access.Devices.RecordPlace(b.Context(), holder{}, b.id(), *w.op, ref)
}

func (b byHand) end(w work, o outcome) {
	b.Helper()
	b.must(b.put(w, o))
}

// on puts a new code on the device under the reference.
func (b byHand) on(pin, ref string) device.Code {
	b.Helper()
	c, _ := b.create(pin)
	w := b.work(c)
	b.begin(w)
	b.end(w, outcome{Ref: ref, Confirmed: true})
	return c
}

func (b byHand) update(ch device.CodeChange) device.Attempt {
	b.Helper()
	ch.EvenIfOffline = true
	a, err := b.access.Devices.UpdateCode(b.Context(), b.p, ch)
	b.must(err)
	return a
}

func (b byHand) deleteCode(c device.Code) device.Attempt {
	b.Helper()
	a, err := b.access.Devices.DeleteCode(b.Context(), b.p, c.ID.String(), "")
	b.must(err)
	return a
}

func (b byHand) managed() []device.Code {
	b.Helper()
	cs, _, err := b.access.Devices.ListCodes(b.Context(), b.p, device.CodeFilter{DeviceID: b.device, Managed: true},
		domain.Page{Limit: 100})
	b.must(err)
	return cs
}

func found(ref, pin string) shown { return shown{Ref: ref, PIN: pin, Confirmed: true} }

// idle lists databases that no test uses. A test takes one and empties it at its end. A new
// database per test would cost most of the tests' processor time for its creation, connections, and
// statement plans.
var idle struct {
	sync.Mutex
	databases []*store.DB
}

// untilExit is a testing.TB whose cleanups do not run. The end of the process ends the cluster with
// its databases.
type untilExit struct{ testing.TB }

func (untilExit) Cleanup(func()) {}

// database returns an empty database for t alone. A test that changes the schema uses ownDatabase.
func database(t *testing.T) (db *store.DB) {
	t.Helper()
	idle.Lock()
	if n := len(idle.databases); n > 0 {
		db, idle.databases = idle.databases[n-1], idle.databases[:n-1]
	}
	idle.Unlock()
	if db == nil {
		db = open(t, untilExit{t})
	}
	t.Cleanup(func() {
		if err := empty(db); err != nil {
			t.Errorf("empty the test's database: %v", err)
			return
		}
		idle.Lock()
		defer idle.Unlock()
		idle.databases = append(idle.databases, db)
	})
	return db
}

// ownDatabase returns a database that is dropped when t ends.
func ownDatabase(t *testing.T) *store.DB {
	t.Helper()
	db := open(t, t)
	t.Cleanup(db.Close)
	return db
}

func open(t *testing.T, owner testing.TB) *store.DB {
	t.Helper()
	db, err := store.Open(t.Context(), storetest.New(owner), 20)
	if err != nil {
		t.Fatal(err)
	}
	return db
}

// deleteAll deletes all rows except those of the migrations. It disables triggers, including those
// of foreign keys.
const deleteAll = `do $$ declare t text; begin
	set local session_replication_role = replica;
	for t in select relname from pg_class where relkind = 'r' and relnamespace = current_schema()::regnamespace
		and relname not in ('goose_db_version', 'river_migration')
	loop execute format('delete from %I', t); end loop;
end $$`

func empty(db *store.DB) error {
	ctx, cancel := context.WithTimeout(context.Background(), testenv.Timeout(time.Minute))
	defer cancel()
	_, err := db.Pool.Exec(ctx, deleteAll)
	return err
}
