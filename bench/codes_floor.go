package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"sync/atomic"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/deviceaccess/terraform-provider-deviceaccess/server/sandbox"
)

// codeFloor sets codes on simulated locks with four transactions for each code: it writes the code and an event, reads
// the code, records the vendor's answer, and records the end and another event. It takes no precautions.
type codeFloor struct {
	pool   *pgxpool.Pool
	cloud  *sandbox.Sandbox
	vendor *httptest.Server // the simulated vendor
	server *httptest.Server // the floor's API
	client *http.Client
	token  string
	locks  []*floorLock
	pin    atomic.Int64
}

// floorLock is a lock of the floor. One goroutine works on the lock.
type floorLock struct {
	id      string // the vendor's
	created chan uuid.UUID
	done    chan error // receives the outcome of each code
}

// vendorCode is a code in the vendor's responses.
type vendorCode struct {
	ID       string `json:"access_code_id"`
	CustomID string `json:"custom_id"`
	Status   string `json:"status"`
}

func newCodeFloor(ctx context.Context, c *cluster) (_ *codeFloor, err error) {
	f := &codeFloor{client: &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 2 * codeLocks}}}
	defer func() {
		if err != nil {
			f.close()
		}
	}()
	if err := f.connect(ctx, c); err != nil {
		return nil, err
	}
	f.cloud = sandbox.New(sandbox.Options{Speed: noLatency})
	f.vendor = httptest.NewServer(f.cloud.Handler())
	account, err := f.cloud.EnsureAccount(sandbox.AccountSpec{
		Key:             "floor",
		Profiles:        []string{lockProfile},
		LocksPerProfile: codeLocks,
	})
	if err != nil {
		return nil, err
	}
	f.token = account.Token
	byID := map[string]*floorLock{}
	for _, l := range account.Locks {
		lock := &floorLock{id: l.ID, created: make(chan uuid.UUID, 1), done: make(chan error, 1)}
		f.locks, byID[l.ID] = append(f.locks, lock), lock
		go func() {
			for id := range lock.created {
				lock.done <- f.program(ctx, lock, id)
			}
		}()
	}
	f.server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		id, lock, err := f.insert(r, byID)
		if err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		w.Header().Set("Content-Type", "application/json")
		json.NewEncoder(w).Encode(map[string]any{"id": id}) //nolint:errcheck // the client fails
		lock.created <- id
	}))
	return f, nil
}

// connect creates the floor's database, so that its transactions are counted separately, and its tables.
func (f *codeFloor) connect(ctx context.Context, c *cluster) error {
	dsn, err := secondDatabase(ctx, c)
	if err != nil {
		return err
	}
	cfg, err := pgxpool.ParseConfig(dsn)
	if err != nil {
		return err
	}
	cfg.MaxConns = connections
	if f.pool, err = pgxpool.NewWithConfig(ctx, cfg); err != nil {
		return err
	}
	_, err = f.pool.Exec(
		ctx,
		`create table codes (id uuid primary key, lock text not null, pin text not null, status text not null,
			vendor_ref text, created_at timestamptz default now());
		create index on codes (lock);
		create table events (id uuid primary key, code uuid not null, type text not null, payload jsonb not null,
			created_at timestamptz default now());
		create index on events (code, created_at)`,
	)
	return err
}

// insert is the first transaction.
func (f *codeFloor) insert(r *http.Request, locks map[string]*floorLock) (id uuid.UUID, _ *floorLock, err error) {
	var in struct {
		Lock string `json:"lock"`
	}
	if err := json.NewDecoder(r.Body).Decode(&in); err != nil {
		return id, nil, err
	}
	lock := locks[in.Lock]
	if lock == nil {
		return id, nil, fmt.Errorf("there is no lock %q", in.Lock)
	}
	id = uuid.Must(uuid.NewV7())
	_, err = f.pool.Exec(
		r.Context(),
		`with event as (insert into events (id, code, type, payload)
			values ($1, $2, 'created', jsonb_build_object('lock', $3::text)))
		insert into codes (id, lock, pin, status) values ($2, $3, $4, 'setting')`,
		uuid.Must(uuid.NewV7()), id, lock.id, f.nextPIN(),
	)
	return id, lock, err
}

// nextPIN returns a PIN that no code has.
func (f *codeFloor) nextPIN() string { return fmt.Sprintf("%06d", f.pin.Add(1)) }

// program sets a code on its lock, in the other three transactions.
func (f *codeFloor) program(ctx context.Context, l *floorLock, id uuid.UUID) error {
	var pin string
	if err := f.pool.QueryRow(ctx, "select pin from codes where id = $1", id).Scan(&pin); err != nil {
		return err
	}
	if _, err := f.list(ctx, l); err != nil {
		return err
	}
	made, err := f.post(ctx, l, id.String(), pin)
	if err != nil {
		return err
	}
	if _, err := f.pool.Exec(ctx, "update codes set vendor_ref = $2 where id = $1", id, made.ID); err != nil {
		return err
	}
	if err := f.untilActive(ctx, l, made.ID); err != nil {
		return err
	}
	_, err = f.pool.Exec(
		ctx,
		`with event as (insert into events (id, code, type, payload)
			values ($1, $2, 'set', jsonb_build_object('lock', $3::text)))
		update codes set status = 'set' where id = $2`,
		uuid.Must(uuid.NewV7()), id, l.id,
	)
	return err
}

// untilActive waits until a code is on the lock.
func (f *codeFloor) untilActive(ctx context.Context, l *floorLock, ref string) error {
	return poll(ctx, "the code is active", func() (bool, error) {
		codes, err := f.list(ctx, l)
		for _, c := range codes {
			if c.ID == ref {
				return c.Status == "active", err
			}
		}
		return false, err
	})
}

func (f *codeFloor) list(ctx context.Context, l *floorLock) ([]vendorCode, error) {
	var out struct {
		Codes []vendorCode `json:"access_codes"`
	}
	return out.Codes, f.call(ctx, http.MethodGet, "/locks/"+l.id+"/access_codes?refresh=true", nil, &out)
}

func (f *codeFloor) post(ctx context.Context, l *floorLock, key, pin string) (c vendorCode, err error) {
	err = f.call(ctx, http.MethodPost, "/locks/"+l.id+"/access_codes",
		map[string]any{"name": "Guest", "code": pin, "custom_id": key}, &c)
	return c, err
}

// call sends a request to the vendor.
func (f *codeFloor) call(ctx context.Context, method, path string, in, out any) error {
	var body io.Reader
	if in != nil {
		raw, err := json.Marshal(in)
		if err != nil {
			return err
		}
		body = bytes.NewReader(raw)
	}
	req, err := http.NewRequestWithContext(ctx, method, f.vendor.URL+path, body)
	if err != nil {
		return err
	}
	req.Header.Set("Authorization", "Bearer "+f.token)
	res, err := f.client.Do(req)
	if err != nil {
		return err
	}
	defer res.Body.Close()
	answer, err := io.ReadAll(res.Body)
	if err != nil {
		return err
	}
	if res.StatusCode >= http.StatusMultipleChoices {
		return fmt.Errorf("%s %s: %s: %s", method, path, res.Status, answer)
	}
	return json.Unmarshal(answer, out)
}

func (f *codeFloor) create(ctx context.Context, lock int) error {
	_, err := ask(ctx, f.client, target{url: f.server.URL}, fmt.Sprintf(`{"lock":%q}`, f.locks[lock].id))
	return err
}

func (f *codeFloor) awaitSet(ctx context.Context, lock, _ int) error {
	select {
	case <-ctx.Done():
		return ctx.Err()
	case err := <-f.locks[lock].done:
		return err
	}
}

// latency asks the vendor directly: no server can be faster.
func (f *codeFloor) latency(ctx context.Context, lock int) (time.Duration, error) {
	begin := time.Now()
	_, err := f.post(ctx, f.locks[lock], uuid.NewString(), f.nextPIN())
	return time.Since(begin), err
}

func (*codeFloor) settle(context.Context) error { return nil }

func (f *codeFloor) clear(ctx context.Context) error {
	for _, l := range f.locks {
		codes, err := f.list(ctx, l)
		if err != nil {
			return err
		}
		for _, c := range codes {
			if c.CustomID == "" { // of the new lock
				continue
			}
			if err := f.call(ctx, http.MethodDelete, "/access_codes/"+c.ID, nil, &struct{}{}); err != nil {
				return err
			}
		}
	}
	_, err := f.pool.Exec(ctx, "delete from codes")
	return err
}

func (f *codeFloor) close() {
	if f.server != nil {
		f.server.Close()
	}
	for _, l := range f.locks {
		close(l.created)
	}
	f.client.CloseIdleConnections()
	if f.vendor != nil {
		f.vendor.Close()
	}
	if f.cloud != nil {
		f.cloud.Close()
	}
	if f.pool != nil {
		f.pool.Close()
	}
}
