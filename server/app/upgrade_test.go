package app_test

import (
	"bytes"
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"database/sql"
	"encoding/base64"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"text/template"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/pressly/goose/v3"

	"github.com/deviceaccess/terraform-provider-deviceaccess/server/app"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/encryption"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/sandbox"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/store/storetest"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/webhook"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/worker"
	"github.com/deviceaccess/terraform-provider-deviceaccess/test/testenv"
)

// old is a database of an old server, with its secrets.
type old struct {
	*testing.T
	dsn    string
	master []byte
	token  string
	secret []byte
	fill   template.FuncMap
}

func newOld(t *testing.T, hook string) *old {
	t.Helper()
	o := &old{
		T:      t,
		dsn:    storetest.New(t),
		master: encryption.NewMaster(),
		token:  "seam_testUpgrade1_Q7tHc2ZfVx9LrKpN3wYbDm5sGj",
		secret: encryption.NewMaster(),
	}
	keys, err := encryption.New(o.master)
	o.must(err)
	seed := encryption.NewMaster()
	cloud := sandbox.New(sandbox.Options{Seed: binary.BigEndian.Uint64(seed)})
	defer cloud.Close()
	account, err := cloud.EnsureAccount(sandbox.AccountSpec{Key: "of old", Profiles: []string{"august"}})
	o.must(err)
	literal := func(b []byte) string { return fmt.Sprintf(`'\x%x'`, b) }
	dataKey, err := keys.NewDataKey(nil) // its identifier is 1, or 2 for one master key in 256
	o.must(err)
	o.fill = template.FuncMap{
		"seal":      func(place, plain string) string { return literal(keys.Seal(place, []byte(plain))) },
		"dataKeyID": func() byte { return dataKey.ID },
		"dataKey":   func() string { return literal(dataKey.Wrapped) },
		"mac":       func(scope, plain string) string { return literal(keys.MAC(scope, []byte(plain))) },
		"hexHash":   func() string { return fmt.Sprintf("%x", sha256.Sum256([]byte(o.token))) },
		"hash":      func(s string) string { sum := sha256.Sum256([]byte(s)); return literal(sum[:]) },
		"seed":      func() string { return string(seed) },
		"token":     func() string { return o.token },
		"secret":    func() string { return "whsec_" + base64.StdEncoding.EncodeToString(o.secret) },
		"lock":      func() string { return account.Locks[0].ID },
		"serial":    func() string { return "SBX-" + strings.ToUpper(account.Locks[0].ID[:8]) }, // another would be another lock
		"hook":      func() string { return hook },
	}
	o.exec("drop schema public cascade; create schema public")
	return o
}

func (o *old) must(err error) {
	o.Helper()
	if err != nil {
		o.Fatal(err)
	}
}

func (o *old) exec(sql string) {
	o.Helper()
	conn, err := pgx.Connect(o.Context(), o.dsn)
	o.must(err)
	defer conn.Close(context.WithoutCancel(o.Context()))
	_, err = conn.PgConn().Exec(o.Context(), sql).ReadAll()
	o.must(err)
}

// rows returns all rows by table, as JSON.
func (o *old) rows() map[string][]map[string]any {
	o.Helper()
	conn, end := o.connect()
	defer end()
	return o.rowsOn(conn)
}

func (o *old) connect() (conn *pgx.Conn, end func()) {
	o.Helper()
	conn, err := pgx.Connect(o.Context(), o.dsn)
	o.must(err)
	return conn, func() { conn.Close(context.WithoutCancel(o.Context())) }
}

func (o *old) rowsOn(conn *pgx.Conn) map[string][]map[string]any {
	o.Helper()
	names, err := conn.Query(
		o.Context(),
		"select tablename from pg_tables where schemaname = 'public' and tablename <> 'goose_db_version'",
	)
	o.must(err)
	tables, err := pgx.CollectRows(names, pgx.RowTo[string])
	o.must(err)
	out := map[string][]map[string]any{}
	for _, table := range tables {
		found, err := conn.Query(o.Context(), "select to_jsonb(t) from "+pgx.Identifier{table}.Sanitize()+" t")
		o.must(err)
		out[table], err = pgx.CollectRows(found, pgx.RowTo[map[string]any])
		o.must(err)
	}
	return out
}

// keeps fails if a row has lost or changed a value.
func (o *old) keeps(after string, before, now map[string][]map[string]any) {
	o.Helper()
	for table, rows := range before {
		for _, row := range rows {
			if !slices.ContainsFunc(now[table], func(r map[string]any) bool {
				for column, value := range row {
					if fmt.Sprint(r[column]) != fmt.Sprint(value) {
						return false
					}
				}
				return true
			}) {
				o.Errorf("%s: %s has lost or changed %v", after, table, row)
			}
		}
	}
}

// migrate applies the migrations one by one, and after each one the file with its rows, if there is one.
func (o *old) migrate() {
	o.Helper()
	db, err := sql.Open("pgx", o.dsn)
	o.must(err)
	defer db.Close()
	steps, err := goose.NewProvider(goose.DialectPostgres, db, os.DirFS("../store/migrations"))
	o.must(err)
	conn, end := o.connect()
	defer end()
	for first := true; ; first = false {
		before := o.rowsOn(conn)
		step, err := steps.UpByOne(o.Context())
		if errors.Is(err, goose.ErrNoNextVersion) {
			return
		}
		o.must(err)
		name := filepath.Base(step.Source.Path)
		o.keeps(name, before, o.rowsOn(conn))
		if there := o.insert(step.Source.Version); !there || !first {
			continue
		}
		for table, rows := range o.rowsOn(conn) {
			if len(rows) == 0 {
				o.Errorf("the first schema's table %s is empty, so its rows are not tested", table)
			}
		}
	}
}

// insert runs the file of rows of a migration, if there is one.
func (o *old) insert(version int64) bool {
	o.Helper()
	name := fmt.Sprintf("testdata/upgrade/%05d.sql", version)
	fixture, err := os.ReadFile(name)
	if errors.Is(err, os.ErrNotExist) && version > 1 {
		return false
	}
	o.must(err)
	text, err := template.New(name).Funcs(o.fill).Parse(string(fixture))
	o.must(err)
	var script bytes.Buffer
	o.must(text.Execute(&script, nil))
	o.exec(script.String())
	return true
}

// post sends a request with the credential of the database.
func (o *old) post(url, path, body string, out any) {
	o.Helper()
	status, b := o.send(url, path, body)
	if status != http.StatusOK {
		o.Fatalf("%s: %d %s", path, status, b)
	}
	o.must(json.Unmarshal(b, out))
}

func (o *old) send(url, path, body string) (status int, answer []byte) {
	o.Helper()
	req, err := http.NewRequestWithContext(o.Context(), http.MethodPost, url+path, strings.NewReader(body))
	o.must(err)
	req.Header.Set("Authorization", "Bearer "+o.token)
	req.Header.Set("Content-Type", "application/json")
	res, err := http.DefaultClient.Do(req)
	o.must(err)
	defer res.Body.Close()
	b, err := io.ReadAll(res.Body)
	o.must(err)
	return res.StatusCode, b
}

// inbox is a webhook endpoint that accepts events signed with the secret.
type inbox struct {
	mu     sync.Mutex
	secret func() []byte
	events map[string]string // type by identifier
}

func (i *inbox) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	var event struct {
		ID   string `json:"event_id"`
		Type string `json:"event_type"`
	}
	if err == nil {
		err = json.Unmarshal(body, &event)
	}
	mac := hmac.New(sha256.New, i.secret())
	fmt.Fprintf(mac, "%s.%s.%s", r.Header.Get("webhook-id"), r.Header.Get("webhook-timestamp"), body)
	if err != nil || r.Header.Get("webhook-signature") != "v1,"+base64.StdEncoding.EncodeToString(mac.Sum(nil)) {
		w.WriteHeader(http.StatusUnauthorized)
		return
	}
	i.mu.Lock()
	defer i.mu.Unlock()
	i.events[event.ID] = event.Type
}

func (i *inbox) got() map[string]string {
	i.mu.Lock()
	defer i.mu.Unlock()
	return maps.Clone(i.events)
}

func (i *inbox) forget() {
	i.mu.Lock()
	defer i.mu.Unlock()
	clear(i.events)
}

func (o *old) serve(dsn string) *app.App {
	o.Helper()
	a, err := app.Start(o.Context(), app.Config{
		Database: app.Database{
			DatabaseURL: dsn,
			DataDir:     o.TempDir(),
			MasterKey:   base64.StdEncoding.EncodeToString(o.master),
			MaxConns:    10,
		},
		Listen:     "127.0.0.1:0",
		Sandboxing: app.Sandboxing{Speed: 50, Dir: "memory"},
		Work:       worker.Options{Sweep: 200 * time.Millisecond, LeaseTTL: 5 * time.Second},
		Webhooks:   webhook.Options{AllowPrefixes: []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}},
		Log:        slog.New(slog.DiscardHandler),
	})
	o.must(err)
	o.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), testenv.Timeout(time.Minute))
		defer cancel()
		if err := a.Stop(ctx); err != nil {
			o.Error(err)
		}
	})
	return a
}

func (o *old) until(what string, ok func() bool) {
	o.Helper()
	testenv.Until(o, what, ok)
}

// works checks that a server works with the rows: codes with their PINs and identifiers, a pending attempt, due deliveries, and new
// events for the webhook.
func (o *old) works(dsn string, hook *inbox) {
	o.Helper()
	url := o.serve(dsn).URL
	type code struct {
		ID     string `json:"access_code_id"`
		Name   string
		PIN    string `json:"code"`
		Status string
	}
	var codes struct {
		Codes []code `json:"access_codes"`
	}
	const device = `{"device_id":"018f0000-0000-7000-8000-000000000004"}`
	want := []code{
		{"018f0000-0000-7000-8000-000000000005", "Cleaner", "730158", "set"},
		{"018f0000-0000-7000-8000-000000000006", "Guest", "914736", "set"},
	}
	o.until("the codes are set", func() bool {
		o.post(url, "/access_codes/list", device, &codes)
		slices.SortFunc(codes.Codes, func(a, b code) int { return strings.Compare(a.ID, b.ID) })
		return slices.Equal(codes.Codes, want)
	})
	var attempt struct {
		Attempt struct{ Status string } `json:"action_attempt"`
	}
	o.until("the attempt has ended", func() bool {
		o.post(url, "/action_attempts/get", `{"action_attempt_id":"018f0000-0000-7000-8000-000000000008"}`, &attempt)
		return attempt.Attempt.Status == "success"
	})
	o.until("what was due has arrived", func() bool {
		got := hook.got()
		return got["018f0000-0000-7000-8000-00000000000c"] == "device.connected" &&
			got["018f0000-0000-7000-8000-00000000000d"] == "device.disconnected"
	})
	o.until("what has happened since arrives", func() bool {
		return slices.Contains(slices.Collect(maps.Values(hook.got())), "access_code.set_on_device")
	})
	var unmanaged struct {
		Codes []struct {
			ID string `json:"access_code_id"`
		} `json:"access_codes"`
	}
	o.until("what is on the lock is read", func() bool { // the simulated one has some, and not the one of old
		o.post(url, "/access_codes/unmanaged/list", device, &unmanaged)
		return len(unmanaged.Codes) > 0 && unmanaged.Codes[0].ID != "018f0000-0000-7000-8000-000000000007"
	})
	var devices struct {
		Devices []struct {
			ID       string         `json:"device_id"`
			Metadata map[string]any `json:"custom_metadata"`
		}
	}
	if o.post(
		url,
		"/devices/list",
		"{}",
		&devices,
	); len(devices.Devices) == 0 ||
		fmt.Sprint(devices.Devices[0].Metadata["floor"]) != "2" {
		o.Errorf("the devices are %+v", devices.Devices)
	}
}

// A database of the first schema with rows in every table is migrated step by step. No step loses a value, and a server works with
// the result.
func TestDatabaseOfTheFirstSchemaIsUpgraded(t *testing.T) {
	t.Parallel()
	hook := &inbox{events: map[string]string{}}
	receiver := httptest.NewServer(hook)
	t.Cleanup(receiver.Close)
	o := newOld(t, receiver.URL)
	hook.secret = func() []byte { return o.secret }
	if o.migrate(); t.Failed() {
		return
	}
	o.newAccount()
	t.Run(
		"and a dump of it is restored",
		func(t *testing.T) { //nolint:paralleltest // both servers tell the same webhook
			dumped := *o
			dumped.T = t
			dumped.isDumped(hook)
		},
	)
	hook.forget()
	o.works(o.dsn, hook)
}

// The server that migrates the database accepts the credentials of the version without keyed hashes. No later start
// accepts a row without one.
func TestUpgrade_BindsCredentialsOnce(t *testing.T) {
	t.Parallel()
	o := newOld(t, "http://127.0.0.1:9/")
	db, err := sql.Open("pgx", o.dsn)
	o.must(err)
	defer db.Close()
	steps, err := goose.NewProvider(goose.DialectPostgres, db, os.DirFS("../store/migrations"))
	o.must(err)
	_, err = steps.UpTo(t.Context(), 1)
	o.must(err)
	o.insert(1)
	first := o.serve(o.dsn)
	if status, b := o.send(first.URL, "/workspaces/get", "{}"); status != http.StatusOK {
		t.Fatalf("a credential of the version before gets %d %s", status, b)
	}
	o.must(first.Stop(t.Context()))
	o.exec("update credentials set mac = null")
	second := o.serve(o.dsn)
	if status, b := o.send(second.URL, "/workspaces/get", "{}"); status != http.StatusUnauthorized {
		t.Errorf("after the upgrade, a row without a hash gets %d %s", status, b)
	}
}
