package chaos_test

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/deviceaccess/terraform-provider-deviceaccess/server/store/storetest"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/worker"
)

// brink is a connection that delays the response to a commit which records that a write is about to be sent.
type brink struct {
	*cable
	noted  atomic.Int32  // number of such commits
	goesOn chan struct{} // closed when the server continues
	stands atomic.Bool   // from then on, no lease is renewed, so that only its clock can tell the server that its leases expired
}

// tellsOfWrites makes the database notify which server commits that a code or a user is about to be sent.
const tellsOfWrites = `
create function tell_of_write() returns trigger language plpgsql as $$ begin raise notice '` + aboutToSend + `'; return null; end $$;
create constraint trigger tell after update on access_codes deferrable initially deferred
  for each row when (old.write_gen = 0 and new.write_gen > 0) execute function tell_of_write();
create constraint trigger tell after update on acs_users deferrable initially deferred
  for each row when (old.write_at is null and new.write_at is not null) execute function tell_of_write()`

const aboutToSend = "a write is about to be sent"

func newBrink(t testing.TB, dsn string) *brink {
	t.Helper()
	b := &brink{cable: newCable(), goesOn: make(chan struct{})}
	b.lay(t, dsn, func(from, on net.Conn) { b.passBoth(from, on, b.passes, b.answer) })
	return b
}

var renewal = regexp.MustCompile(`^-- name: RenewLease `)

// passes reports whether statements are forwarded.
func (b *brink) passes(now statements) bool { return !b.stands.Load() || !now.any(renewal) }

// answer forwards responses of the database. It holds the response to such a commit until the server continues.
func (b *brink) answer(from *bufio.Reader, to io.Writer) {
	var kept []byte
	about := false
	for {
		kind, all, err := frame(from, false)
		if err != nil {
			return
		}
		kept = append(kept, all...)
		about = about || kind == notice && bytes.Contains(all, []byte(aboutToSend))
		switch {
		case about && kind != ready:
			continue
		case about:
			about = false
			b.noted.Add(1)
			select {
			case <-b.goesOn:
			case <-b.gone:
				return
			}
		}
		if _, err := to.Write(kept); err != nil {
			return
		}
		kept = nil
	}
}

// A server is frozen after it has recorded that it is about to send a code to a lock and a user to an access system. It
// continues when its leases have expired and another server has done both. It must send neither, although nothing but
// its clock tells it.
func TestFrozenServer_DoesNotSendAfterLeaseExpiry(t *testing.T) {
	t.Parallel()
	storetest.NeedPostgres(t)
	p := newPair(t)
	first := p.server("the frozen server", p.brink.dsn(p.dsn), "--ready-file", filepath.Join(p.data, "ready.json"))
	first.ready = filepath.Join(p.data, "ready.json")
	key, _ := first.credentials()
	c := &client{
		url:     "http://" + first.addr,
		key:     key,
		http:    http.DefaultClient,
		asked:   map[string]int{},
		refused: map[string]int{},
	}
	sent := []sending{p.code(), p.user()}
	for n := range sent { // both are known by then, so neither takes long
		p.make(c, &sent[n])
	}
	until(t, "it is about to send both", func() bool { return int(p.brink.noted.Load()) == len(sent) })
	first.signal(syscall.SIGSTOP)
	p.brink.stands.Store(true)
	other := p.server("another", p.dsn)
	for _, s := range sent {
		until(t, other.name+" has done it: "+s.what, func() bool { return p.is(s.done, s.id) })
	}
	first.signal(syscall.SIGCONT)
	close(p.brink.goesOn)
	for _, s := range sent {
		until(
			t,
			first.name+" knows that it has lost the lease of "+s.key,
			func() bool { return loses(t, first, s.key) },
		)
		if got, want := p.writesTo(s.of), []string{other.name + ": " + s.what}; !slices.Equal(got, want) {
			t.Errorf("%s was sent %q, want %q", s.of, got, want)
		}
		if n := p.named(s); n != 1 {
			t.Errorf("%s has what was sent %d times", s.of, n)
		}
	}
}

// pair is two servers on one database and one cloud, and what they share.
type pair struct {
	testing.TB
	*witness
	program, data, dsn string
	pool               *pgxpool.Pool
	brink              *brink
	vendor             string // address of the cloud
	watched            string // address of the witness in front of the cloud
	asking             openers
}

func newPair(t testing.TB) *pair {
	t.Helper()
	p := &pair{
		TB:      t,
		witness: &witness{},
		program: build(t),
		data:    t.TempDir(),
		dsn:     storetest.New(t),
	}
	var err error
	if p.pool, err = pgxpool.New(t.Context(), p.dsn); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(p.pool.Close)
	if _, err := p.pool.Exec(t.Context(), tellsOfWrites); err != nil {
		t.Fatal(err)
	}
	p.brink = newBrink(t, p.dsn)
	p.vendor = newInstance(
		t,
		"the cloud",
		p.program,
		"sandbox",
		"serve",
		"--sandbox-speed",
		"20",
		"--data-dir",
		p.data,
		"--database-url",
		p.dsn,
	).addr
	p.watched = p.watchCloud(t, p.vendor, p.asking.whose)
	return p
}

// server starts a server with its own database connection.
func (p *pair) server(name, dsn string, more ...string) *instance {
	p.Helper()
	cloud := p.asking.gate(p, p.watched, func(net.Conn) string { return name })
	return newInstance(
		p,
		name,
		append(
			[]string{
				p.program,
				"serve",
				"--sandbox",
				"--sandbox-url",
				"http://" + cloud.addr,
				"--data-dir",
				p.data,
				"--database-url",
				dsn,
			},
			more...)...)
}

// sending is an object that must be sent to a vendor once.
type sending struct {
	what, of string         // name and destination for the witness
	key      string         // key of the lease
	kind     string         // name in the API
	path     string         // path that creates it
	in       map[string]any // parameters of its creation
	id       string         // once created
	done     string         // SQL question whether it is done
	memory   string         // memory of its destination
	name     string         // name in that memory
	token    string         // token of the account
}

// code returns a code to be created on a lock.
func (p *pair) code() sending {
	p.Helper()
	device, ref := p.finds(
		"the locks have been read",
		`select device_id::text, vendor_ref from devices where device_type = 'august_lock'
		and not exists (select 1 from devices where last_good_read_at is null or due_at <= now())`,
	)
	return sending{
		what: "POST lock access_codes",
		of:   "lock:" + ref,
		key:  "device:" + device,
		kind: "access_code",
		path: "/access_codes/create",
		in: map[string]any{
			"device_id": device,
			"name":      "Guest",
		},
		done:   "select status = 'set' from access_codes where access_code_id = $1",
		memory: "locks/" + ref,
		name:   "Guest",
		token:  p.tokenOf("GET locks"),
	}
}

// user returns a user to be created on an access system.
func (p *pair) user() sending {
	p.Helper()
	out, err := exec.CommandContext(p.Context(), p.program, "sandbox", "connect-access-systems", "--systems", "1", "--data-dir", p.data, "--database-url", p.dsn).
		CombinedOutput()
	if err != nil {
		p.Fatalf("connect access systems: %v\n%s", err, out)
	}
	system, ref := p.finds(
		"the access system has been read",
		`select acs_system_id::text, vendor_ref from acs_systems where exists (select 1 from acs_users)`,
	)
	return sending{
		what: "POST system users",
		of:   "system:" + ref,
		key:  "acs_system:" + system,
		kind: "acs_user",
		path: "/acs/users/create",
		in: map[string]any{
			"acs_system_id": system,
			"full_name":     "Jane Doe",
		},
		done:   "select written_gen >= desired_gen from acs_users where acs_user_id = $1",
		memory: "systems/" + ref,
		name:   "Jane Doe",
		token:  p.tokenOf("GET systems"),
	}
}

// finds waits for an object that the servers work on, and returns its id and the vendor's.
func (p *pair) finds(what, question string) (id, ref string) {
	p.Helper()
	until(p, what, func() bool { return p.pool.QueryRow(p.Context(), question).Scan(&id, &ref) == nil })
	return id, ref
}

// make creates it.
func (p *pair) make(c *client, s *sending) {
	p.Helper()
	a, ok := c.ask(p.Context(), s.path, s.in)
	if !ok || a.status != http.StatusOK {
		p.Fatal(a.refusal(s.path))
	}
	s.id = a.text(s.kind, s.kind+"_id")
}

// is asks the database a question.
func (p *pair) is(question, id string) (yes bool) {
	p.Helper()
	if err := p.pool.QueryRow(p.Context(), question, id).Scan(&yes); err != nil {
		p.Fatal(err)
	}
	return yes
}

// writesTo returns the writes to a vendor's object with their servers, in order.
func (p *pair) writesTo(of string) (all []string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, r := range p.seen {
		if r.of == of && !strings.HasPrefix(r.what, http.MethodGet) {
			all = append(all, fmt.Sprintf("%s: %s", r.server, r.what))
		}
	}
	return all
}

// named returns how many times it is at its destination.
func (p *pair) named(s sending) (n int) {
	p.Helper()
	var memory struct {
		Codes []struct {
			Name string `json:"name"`
		} `json:"access_codes"`
		Users []person `json:"users"`
	}
	lookInto(p, "http://"+p.vendor+"/sandbox/cloud/sandbox/"+s.memory+"/memory", s.token, &memory)
	for _, c := range memory.Codes {
		if c.Name == s.name {
			n++
		}
	}
	for _, u := range memory.Users {
		if u.FullName == s.name {
			n++
		}
	}
	return n
}

// loses reports whether a server has logged that it stopped work because it lost the lease.
func loses(t testing.TB, i *instance, key string) bool {
	t.Helper()
	log, err := os.ReadFile(i.log.Name())
	if err != nil {
		t.Fatal(err)
	}
	_, id, _ := strings.Cut(key, ":")
	for line := range strings.Lines(string(log)) {
		if strings.Contains(line, id) && strings.Contains(line, worker.ErrLeaseLost.Error()) {
			return true
		}
	}
	return false
}
