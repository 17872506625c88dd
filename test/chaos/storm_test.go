package chaos_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net"
	"net/http"
	"net/url"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/deviceaccess/terraform-provider-deviceaccess/server/sandbox"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/store/storetest"
	"github.com/deviceaccess/terraform-provider-deviceaccess/test/secretscan"
)

// frozen is longer than a lease, so that others take over the work of the frozen server.
const frozen = 18 * time.Second

// storm is three servers behind a balancer, on one database, with the locks of one cloud.
type storm struct {
	testing.TB
	long           bool // the long form
	program, data  string
	database       *database
	instances      []*instance
	balancer       *balancer
	vendor         string // address of the cloud
	cloud          gates  // of each server
	endpoints      *gate
	witness        *witness
	webhooks       map[string]string // leases of endpoints, by their names at the witness
	subscribed     time.Time         // both endpoints receive the events of later transactions
	frozen, killed []absence
	locks          []string // device_ids
	receiver       *receiver
	pool           *pgxpool.Pool
	key, workspace string
	guests         []*guests
	staff          *staff
	counts         map[string]int
	cuts           map[string][]cutOff
	offline        map[string]int // outages by device
	connected      map[string]int // earlier events of returns by device
	takeovers      int
	dropped        int               // leases that expired without due work
	settled        time.Duration     // the slowest part of the settling
	late           []string          // what was started or done too late
	worst          time.Duration     // longest time until the work of a killed or frozen server continued
	slowest        string            // what that was, and after which faults
	found          map[string][]slot // memory of each lock before, by device
	programs       []*instance       // all, including the cloud
	secrets        secretscan.Ledger
	seed           uint64
}

// Three servers are killed, frozen, and stopped, while guests work on codes and staff on users of access systems. The
// database is restarted and killed. The cloud and the endpoints are cut off, also for longer than a lease. In the end,
// every answered request has had its effect once or has an error, no slot of a lock holds a code without an owner,
// every event has arrived, and no work is left. The short form (without CHAOS_FAULTS) freezes no server, has less load,
// and cuts off the cloud and the endpoints only until this has an effect.
func TestStorm(t *testing.T) {
	t.Parallel()
	storetest.NeedPostgres(t)
	faults, restarts := number(t, "CHAOS_FAULTS", 2), number(t, "CHAOS_RESTARTS", 1)
	s := newStorm(t, build(t), isLong("CHAOS_FAULTS"))
	random, cuts := rand.New(rand.NewPCG(s.seed, 2)), planCuts(faults, rand.New(rand.NewPCG(s.seed, 3)))
	loading, stop := context.WithCancel(t.Context())
	var living sync.WaitGroup
	s.staff = newStaff(s, s.seed)
	for _, g := range s.guests {
		living.Go(func() { g.live(t.Context(), loading) })
	}
	living.Go(func() { s.staff.live(t.Context(), loading) })
	t.Cleanup(living.Wait)
	t.Cleanup(stop)
	begun := time.Now()
	for n := range faults {
		s.progress(fmt.Sprintf("requests are answered after %d faults", n))
		s.answers(1 + random.IntN(100)) // the seed decides the moment
		victim := s.instances[random.IntN(len(s.instances))]
		fault := n % 5
		if fault == 1 && !s.long {
			fault = 3
		}
		switch fault {
		case 0, 2:
			s.counts["kill -9"]++
			begun := time.Now()
			victim.end(syscall.SIGKILL)
			s.killed = append(s.killed, absence{victim.name, begun, time.Now()})
			s.takenOver(s.leases())
		case 1:
			s.counts["frozen"]++
			begun := time.Now()
			victim.signal(syscall.SIGSTOP)
			s.takenOver(s.leases())
			<-time.After(time.Until(begun.Add(frozen)))
			s.frozen = append(s.frozen, absence{victim.name, begun, time.Now()})
			victim.signal(syscall.SIGCONT)
		default:
			s.counts["TERM"]++
			victim.end(syscall.SIGTERM)
		}
		if restarts*(n+1)/faults > restarts*n/faults {
			how := "database killed" // the first fault, and then in turn
			if s.counts[how] > s.counts["database stopped"] {
				how = "database stopped"
			}
			s.counts[how]++
			s.database.restart(how == "database killed")
		}
		if c, planned := cuts[n]; planned {
			s.cutOff(c)
		}
	}
	s.progress("requests are answered after the storm")
	stop()
	living.Wait()
	s.finish()
	s.outlive()
	s.settle()
	s.audit(faults, time.Since(begun))
	s.tellsNoSecret()
}

// finish makes guests do what none of them has done, and changes the ends of codes.
func (s *storm) finish() {
	s.Helper()
	n := 100_000 // unused names
	until(s, "guests have done everything", func() bool {
		did := map[string]int{}
		for _, g := range s.guests {
			g.act(s.Context(), n)
			for what, times := range g.did {
				did[what] += times
			}
		}
		n++
		return hasDone(did, deeds)
	})
	for _, g := range s.guests {
		g.lastWishes(s.Context())
	}
}

// newStorm starts three servers of a program, which may be an older version. They create the schema.
func newStorm(t testing.TB, program string, long bool) *storm {
	t.Helper()
	s := &storm{
		TB:       t,
		long:     long,
		program:  program,
		data:     t.TempDir(),
		database: newDatabase(t),
		witness:  &witness{},
		webhooks: map[string]string{},
		counts:   map[string]int{},
		cuts:     map[string][]cutOff{},
		offline:  map[string]int{},
		secrets:  secretscan.Ledger{Random: true},
		seed:     uint64(number(t, "CHAOS_SEED", 1)),
	}
	dsn := s.database.dsn()
	common := []string{"--data-dir", s.data, "--database-url", dsn}
	out, err := exec.CommandContext(t.Context(), s.program, append([]string{"migrate"}, common...)...).CombinedOutput()
	if err != nil {
		t.Fatalf("migrate: %v\n%s", err, out)
	}
	if s.pool, err = pgxpool.New(t.Context(), dsn); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.pool.Close)
	if _, err := s.pool.Exec(t.Context(), leaseLog); err != nil {
		t.Fatal(err)
	}
	cloud := newInstance(
		t,
		"the cloud",
		append([]string{s.program, "sandbox", "serve", "--sandbox-speed", "20"}, common...)...)
	s.vendor, s.programs = cloud.addr, []*instance{cloud}
	var asking, sending openers
	watched := s.witness.watchCloud(t, s.vendor, asking.whose)
	s.balancer = newBalancer(t)
	each := 1 // locks per profile
	if long {
		each = 2
	}
	for n := range 3 {
		name := fmt.Sprintf("server %d", n+1)
		cloud := asking.gate(t, watched, func(net.Conn) string { return name })
		s.cloud = append(s.cloud, cloud)
		args := []string{
			s.program,
			"serve",
			"--sandbox",
			"--sandbox-locks",
			strconv.Itoa(each),
			"--sandbox-url",
			"http://" + cloud.addr,
			"--data-dir",
			s.data,
			"--database-url",
			dsn + "&application_name=" + url.PathEscape(name),
			"--public-url",
			"http://" + s.balancer.addr,
			"--allow-webhook-prefix",
			"127.0.0.0/8",
			"--log-level",
			logLevels[n],
			"--shutdown-delay",
			"3s",
			"--offline-debounce",
			debounce.String(),
		}
		if n == 0 { // the first one creates the sandbox and the key
			args = append(args, "--ready-file", filepath.Join(s.data, "ready.json"))
		}
		i := newInstance(t, name, args...)
		if n == 0 {
			i.ready = filepath.Join(s.data, "ready.json")
			s.key, s.workspace = i.credentials()
		}
		s.instances, s.programs = append(s.instances, i), append(s.programs, i)
		s.balancer.add(t.Context(), i.addr)
	}
	s.receiver = newReceiver(
		t,
		func(path, from string) (done func()) { return s.witness.delivery(sending.whose(from), path) },
	)
	s.endpoints = sending.gate(t, strings.TrimPrefix(s.receiver.URL, "http://"), s.origin)
	s.people(each * len(sandbox.Profiles()))
	return s
}

// origin returns the server that has opened a connection.
func (s *storm) origin(c net.Conn) string {
	names, all := map[int]string{}, []int{}
	for _, i := range s.instances {
		pid := i.pid()
		names[pid] = i.name
		all = append(all, pid)
	}
	pid, why := opener(c, all)
	if pid == 0 {
		s.witness.stranger(c, why)
	}
	return names[pid]
}

func to(addr string) func(context.Context) (net.Conn, error) {
	return func(ctx context.Context) (net.Conn, error) { return (&net.Dialer{}).DialContext(ctx, "tcp", addr) }
}

// people creates two endpoints, and guests who divide the locks among them.
func (s *storm) people(locks int) {
	s.Helper()
	c := &client{
		url:     "http://" + s.balancer.addr,
		key:     s.key,
		asked:   map[string]int{},
		refused: map[string]int{},
		http: &http.Client{
			Transport: s.secrets.RoundTripper(&http.Transport{DisableKeepAlives: true}),
		},
	} // each request to another server
	for _, path := range []string{"/fast/", "/slow/"} {
		s.receiver.mu.Lock() // nothing is received before its secret is known
		a, ok := c.ask(s.Context(), "/webhooks/create", map[string]any{"url": "http://" + s.endpoints.addr + path})
		s.receiver.secrets[path] = a.text("webhook", "secret")
		s.receiver.mu.Unlock()
		if !ok || a.status != http.StatusOK {
			s.Fatalf("create a webhook: %d", a.status)
		}
		s.webhooks["endpoint:"+path] = "endpoint:" + a.text("webhook", "webhook_id")
	}
	s.subscribed = databaseTime(s, s.pool)
	var devices []string
	until(s, "the locks are there", func() bool {
		devices = nil
		a, _ := c.ask(s.Context(), "/locks/list", map[string]any{"limit": 200})
		all, _ := a.body["devices"].([]any)
		for _, d := range all {
			d, _ := d.(map[string]any)
			devices = append(devices, fmt.Sprint(d["device_id"]))
		}
		var unread int
		err := s.pool.QueryRow(s.Context(), "select count(*) from devices where due_at <= now()").Scan(&unread)
		return err == nil && len(devices) == locks && unread == 0
	})
	s.locks, s.found = devices, map[string][]slot{}
	for _, d := range devices {
		s.found[d] = s.memory(d)
	}
	s.connected = s.tales("device.connected", "device_id")
	const several = 4
	for n := range several {
		var mine []string
		for i, d := range devices {
			if i%several == n {
				mine = append(mine, d)
			}
		}
		g := newGuests(c, s.seed<<8+uint64(n), mine)
		if !s.long {
			g.pace = pace
		}
		s.guests = append(s.guests, g)
	}
}

// answers waits until n more requests are answered.
func (s *storm) answers(n int) {
	s.Helper()
	enough := s.guests[0].answered() + n
	until(s, fmt.Sprintf("%d more requests are answered", n), func() bool { return s.guests[0].answered() >= enough })
}

// progress waits until requests are answered again, and checks for endpoints that are due too late.
func (s *storm) progress(what string) {
	s.Helper()
	before := s.guests[0].answered()
	until(s, what, func() bool { return s.guests[0].answered() > before+10 })
	s.oversleep()
}

// lease is the holder of a lease and its expiry.
type lease struct {
	fence int64
	until time.Time
}

// leases returns the held leases by key.
func (s *storm) leases() (held map[string]lease) {
	s.Helper()
	until(s, "the database lists the leases", func() bool {
		held = map[string]lease{}
		rows, err := s.pool.Query(
			s.Context(),
			"select key, fence, held_until from leases where held_until > now() and held_until < 'infinity'",
		)
		if err != nil {
			return false
		}
		defer rows.Close()
		for rows.Next() {
			var key string
			var l lease
			if rows.Scan(&key, &l.fence, &l.until) != nil {
				return false
			}
			held[key] = l
		}
		return rows.Err() == nil
	})
	return held
}

// takenOver waits until other servers continue the work of a killed or frozen server. Leases that are renewed or
// released belong to live servers. An expired lease matters only if work is due.
func (s *storm) takenOver(held map[string]lease) {
	s.Helper()
	gone := time.Now()
	until(s, "others have taken over", func() bool {
		left := 0
		for key, was := range held {
			var same, over, taken bool
			err := s.pool.QueryRow(s.Context(), `select exists (select 1 from leases where key = $1 and fence = $2 and held_until = $3), $3 <= now(),
				exists (select 1 from leases where key = $1 and fence > $2) and $3 <= now()`, key, was.fence, was.until).
				Scan(&same, &over, &taken)
			if err != nil {
				return false
			}
			if same && (!over || s.isDue(key)) {
				left++
				continue
			}
			if same {
				s.dropped++
			}
			if taken { // only after its expiry: after a release, another server may take it sooner
				s.takeovers++
				if took := time.Since(gone); took > s.worst {
					s.worst, s.slowest = took, fmt.Sprintf("%s, after %v", key, s.counts)
				}
			}
			delete(held, key)
		}
		return left == 0
	})
}

// isDue reports whether there is work for the key of a lease.
func (s *storm) isDue(key string) (due bool) {
	lane, id, _ := strings.Cut(key, ":")
	question := map[string]string{
		"device":     "select exists (select 1 from devices where device_id = $1 and due_at <= now())",
		"account":    "select exists (select 1 from connected_accounts where connected_account_id = $1 and due_at <= now())",
		"endpoint":   "select exists (select 1 from webhooks where webhook_id = $1 and due_at <= now())",
		"acs_system": "select exists (select 1 from acs_systems where acs_system_id = $1 and due_at <= now())",
		"outbox":     "select exists (select 1 from events where workspace_id = $1 and fanned_out_at is null)",
	}[lane]
	if question == "" {
		return false
	}
	err := s.pool.QueryRow(s.Context(), question, id).Scan(&due)
	return err != nil || due
}
