package chaos_test

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"maps"
	"math/rand/v2"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/deviceaccess/terraform-provider-deviceaccess/server/app"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/app/apptest"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/store/storetest"
	"github.com/deviceaccess/terraform-provider-deviceaccess/test/testenv"
)

// keyed is a surviving server, and the options of others that are killed.
type keyed struct {
	*apptest.Server
	program, dsn, data string
	pool               *pgxpool.Pool
	system             *apptest.AccessSystem
	turns              chan struct{} // limits the servers to be killed

	mu   sync.Mutex
	told map[string]int           // lock commands that the cloud received, by its id of the lock
	want map[string]*keyedRequest // undisturbed requests
	seen map[string]trip          // the statements of their handling
	all  []*keyedRequest
}

const (
	atOnce = 8               // requests to one server, which allows one more per address
	within = time.Minute     // time until a request reaches its first commit on a busy machine
	waits  = 3 * time.Second // time that a request may wait for a stopped one
)

// shot is a kind of request and the moment at which its server is killed.
type shot struct {
	kind string
	at   moment
}

// Each operation with an Idempotency-Key is sent to a server that is killed (-9): before it does anything, in the
// middle, before and after each commit, and after its response. Another server then gets the same request. Its response
// equals an earlier one, and the effects are those of an undisturbed request, each exactly once. The short form
// (without CHAOS_STATEMENTS) has one moment for each operation, which the seed chooses.
func TestIdempotency_DoneOnceWhenServerIsKilled(t *testing.T) {
	t.Parallel()
	storetest.NeedPostgres(t)
	k := newKeyed(t)
	kinds := k.kinds(t)
	k.undisturbed(t, kinds)
	var plan []shot
	for _, kind := range kinds {
		plan = append(plan, shot{kind: kind, at: moment{name: "answered"}})
	}
	k.killed(t, plan)
	plan = nil
	random := rand.New(rand.NewPCG(uint64(number(t, "CHAOS_SEED", 1)), 5))
	for _, kind := range kinds {
		moments := k.seen[kind].moments(number(t, "CHAOS_STATEMENTS", 1))
		if !isLong("CHAOS_STATEMENTS") { // one of each kind
			n := random.IntN(len(moments))
			moments = moments[n : n+1]
		}
		for _, m := range moments {
			plan = append(plan, shot{kind, m})
		}
	}
	slices.SortStableFunc(
		plan,
		func(a, b shot) int { return cmp.Compare(a.at.name, b.at.name) },
	) // requests of one kind may wait for each other
	k.killed(t, plan)
	stops := 0
	for _, r := range k.all { // later effects have happened by now
		if got, want := k.outcome(t, r), k.outcome(t, k.want[r.kind]); !r.isRight(got, want) {
			t.Errorf("in the end, of %s there is%s", r, difference(got, want))
		}
		if r.stopped {
			stops++
		}
	}
	t.Logf("%d requests of %d kinds, of which %d were stopped in the middle", len(k.all), len(kinds), stops)
}

// moments returns the moments at which a request is stopped: before it does anything, before some statements, and
// before and after each commit.
func (t trip) moments(between int) (all []moment) {
	all = append(all, moment{name: "before its key is claimed", statement: 1})
	between = min(between, t.statements-1)
	for n := range between {
		at := 2 + (t.statements-1)*(2*n+1)/(2*between)
		all = append(all, moment{name: fmt.Sprintf("before statement %d", at), statement: at})
	}
	for n := range t.commits {
		all = append(
			all,
			moment{name: fmt.Sprintf("before commit %d", n+1), commit: n + 1},
			moment{name: fmt.Sprintf("after commit %d", n+1), commit: n + 1, after: true},
		)
	}
	return all
}

func (m moment) isAnswer() bool { return m.statement == 0 && m.commit == 0 }

func (m moment) patience() time.Duration {
	if m.commit > 1 || m.statement > 1 {
		return waits
	}
	return within
}

func newKeyed(t *testing.T) *keyed {
	t.Helper()
	k := &keyed{
		program: build(t),
		turns:   make(chan struct{}, 2),
		want:    map[string]*keyedRequest{},
		seen:    map[string]trip{},
		told:    map[string]int{},
	}
	k.Server = apptest.Start(t, apptest.WithProfiles("august"), func(c *app.Config) {
		c.MaxConns = 40
		k.dsn, k.data = c.DatabaseURL, c.DataDir
		k.countCommands(c)
	})
	var err error
	if k.pool, err = pgxpool.New(t.Context(), k.dsn); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(k.pool.Close)
	k.system = k.AccessSystem(t)
	return k
}

// killed stops requests at their moments and kills their servers.
func (k *keyed) killed(t *testing.T, plan []shot) {
	t.Helper()
	var all sync.WaitGroup
	for lot := range slices.Chunk(plan, atOnce) {
		all.Go(func() { t.Run(lot[0].at.name, func(t *testing.T) { k.lot(t, lot) }) })
	}
	all.Wait()
}

// lot sends requests to one server.
func (k *keyed) lot(t *testing.T, shots []shot) {
	requests := k.make(t, shots)
	k.turns <- struct{}{}
	func() {
		defer func() { <-k.turns }()
		k.askAndKill(t, requests)
	}()
	var all sync.WaitGroup
	for _, r := range requests {
		all.Go(func() { t.Run(r.String()[1:], func(t *testing.T) { k.isDoneOnce(t, r) }) })
	}
	all.Wait()
}

// isDoneOnce repeats a request of a killed server at the surviving one.
func (k *keyed) isDoneOnce(t *testing.T, r *keyedRequest) {
	first := k.ask(t, r, r.body)
	switch {
	case first.status != http.StatusOK:
		t.Fatalf("%s again: %v", r, first)
	case r.given != nil && (!first.replayed || first.body != r.given.body):
		t.Errorf("%s again: %v, want %v", r, first, *r.given)
	}
	if second := k.ask(t, r, r.body); second.body != first.body || !second.replayed {
		t.Errorf("%s a third time: %v, want %v", r, second, first)
	}
	if a := k.ask(
		t,
		r,
		r.otherBody,
	); a.status != http.StatusUnprocessableEntity ||
		!strings.Contains(a.body, `"idempotency_key_reused"`) {
		t.Errorf("%s with another body: %v", r, a)
	}
	k.comesAbout(t, r)
}

// comesAbout waits for all effects of a request.
func (k *keyed) comesAbout(t *testing.T, r *keyedRequest) {
	t.Helper()
	k.mu.Lock()
	other := k.want[r.kind]
	k.mu.Unlock()
	var got, want []string
	for _, account := range r.accounts { // the vendor notified the killed server, if any
		k.Post(t, "/connected_accounts/sync", params{"connected_account_id": account}, nil)
	}
	for deadline := time.Now().Add(testenv.Timeout(testenv.WaitTimeout)); time.Now().Before(deadline); {
		if got, want = k.outcome(t, r), k.outcome(t, other); r.isRight(got, want) {
			return
		}
		select {
		case <-time.After(100 * time.Millisecond):
		case <-t.Context().Done():
			return
		}
	}
	t.Errorf("of %s there is%s", r, difference(got, want))
}

// given is a response.
type given struct {
	status   int
	body     string
	replayed bool
	after    string // Retry-After
}

// String contains no PIN and no token.
func (g given) String() string {
	if g.status != http.StatusOK {
		return fmt.Sprintf("%d %s", g.status, g.body)
	}
	return fmt.Sprintf(
		"200, with %d bytes of the checksum %x, replayed: %t",
		len(g.body),
		crc32.ChecksumIEEE([]byte(g.body)),
		g.replayed,
	)
}

// ask repeats a request while its key is in use or the server is busy.
func (k *keyed) ask(t *testing.T, r *keyedRequest, body string) given {
	t.Helper()
	for deadline := time.Now().Add(testenv.Timeout(testenv.WaitTimeout)); ; {
		a, err := ask(t.Context(), k.URL, r.token, r.path, r.key, body)
		if err != nil {
			t.Fatal(err)
		}
		inUse := a.status == http.StatusConflict && strings.Contains(a.body, `"idempotency_key_in_use"`)
		if !inUse && a.status != http.StatusServiceUnavailable {
			return a
		}
		seconds, err := strconv.Atoi(cmp.Or(a.after, "1"))
		if err != nil || time.Now().After(deadline) || inUse && a.after == "" {
			t.Fatalf("%s: still %v, and Retry-After is %q", r, a, a.after)
		}
		k.passes(t, r)
		select {
		case <-time.After(time.Duration(seconds) * time.Second):
		case <-t.Context().Done():
			t.Fatal(t.Context().Err())
		}
	}
}

// passes releases keys that are held for work outside the database, since they would be held as long as this test runs.
func (k *keyed) passes(t *testing.T, r *keyedRequest) {
	t.Helper()
	var longest bool
	err := k.pool.QueryRow(t.Context(), `with held as (select * from idempotency_keys where credential_id = $1 and answer_sealed is null and held_until is not null)
		update idempotency_keys k set held_until = clock_timestamp() from held where held.idempotency_key_id = k.idempotency_key_id
		returning held.held_until > clock_timestamp() + interval '90 seconds'`, r.credential).
		Scan(&longest)
	if err != nil && !errors.Is(err, pgx.ErrNoRows) {
		t.Fatal(err)
	}
	if longest {
		t.Errorf("the key of %s is held for more than a minute and a half", r)
	}
}

func ask(ctx context.Context, url, token, path, key, body string) (a given, err error) {
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, url+path, strings.NewReader(body))
	if err != nil {
		return a, err
	}
	r.GetBody = nil // prevents a retry by the client
	r.Header = apptest.Bearer(token)
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("Idempotency-Key", key)
	res, err := http.DefaultClient.Do(r)
	if err != nil {
		return a, err
	}
	defer res.Body.Close()
	raw, err := io.ReadAll(res.Body)
	return given{
		res.StatusCode,
		string(raw),
		res.Header.Get("Idempotency-Replayed") == "true",
		res.Header.Get("Retry-After"),
	}, err
}

// undisturbed sends one request of each kind to the surviving server and records its effects.
func (k *keyed) undisturbed(t *testing.T, kinds []string) {
	t.Helper()
	var all sync.WaitGroup
	var plan []shot
	for _, kind := range kinds {
		plan = append(plan, shot{kind, moment{name: "undisturbed"}})
	}
	for _, r := range k.make(t, plan) {
		all.Go(func() {
			if a := k.ask(t, r, r.body); a.status != http.StatusOK {
				t.Errorf("%s: %v", r, a)
			}
			apptest.Until(t, r.kind+" has its effects", func() bool { return k.settled(t, r) })
			k.mu.Lock()
			defer k.mu.Unlock()
			k.want[r.kind] = r
		})
	}
	all.Wait()
}

func (r *keyedRequest) String() string { return fmt.Sprintf("%s, %s", r.kind, r.at.name) }

// difference returns a diff by line.
func difference(got, want []string) (text string) {
	count := map[string]int{}
	for _, line := range want {
		count[line]--
	}
	for _, line := range got {
		count[line]++
	}
	for _, line := range slices.Sorted(maps.Keys(count)) {
		if n := count[line]; n != 0 {
			text += fmt.Sprintf("\n%+d  %s", n, line)
		}
	}
	return text
}
