package abuse

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/deviceaccess/terraform-provider-deviceaccess/server/ratelimit"
)

const attackerVariable = "DEVICEACCESS_HOSTILE_ATTACKER"

// Target is the attacked server, with valid credentials: the worst attackers are customers.
type Target struct {
	URL, Key, Device string
	Roamer           string  // a personal access token; empty until needed
	Public           string  // a publishable key; empty until needed
	Houses           []house // nil until needed
}

// places are the addresses where the attackers listen.
type places struct{ Cloud, Broker string }

// command is a line to the attackers' process; reply is its answer.
type command struct {
	Aim   *Target `json:",omitempty"`
	Start string  `json:",omitempty"`
	// Hits asks for the counts of requests to misbehaving parts, created workspaces, and connections.
	Hits bool `json:",omitempty"`
	Stop bool `json:",omitempty"`
}

type reply struct {
	Note    string
	Hits    int
	Reach   Reach
	Problem string
}

// Reach is how far an attack has come.
type Reach struct {
	// Connections is the maximum number of simultaneous connections: the server sheds the surplus.
	Connections int
	Made        int // connections made in total
	Wanted      int // connections to make
	// Room is the number of connections that the limit of open files allows.
	Room int
	// Slow counts connections whose header was still being sent after headerEnds.
	Slow       int
	Workspaces int // workspaces created with one token
	// MayMake is the number of workspaces that the server allows by then.
	MayMake int
}

// attackers is the attackers' process.
type attackers struct {
	cmd *exec.Cmd
	in  io.WriteCloser
	out *bufio.Scanner
	at  places
}

// startAttackers starts the attackers. They get the lowest priority if the server's processor time is measured.
func startAttackers(ctx context.Context, measured bool) (*attackers, error) {
	exe, err := os.Executable()
	if err != nil {
		return nil, err
	}
	a := &attackers{cmd: exec.CommandContext(ctx, exe)}
	how := "as others"
	if measured {
		how = "nice"
	}
	a.cmd.Env = append(os.Environ(), attackerVariable+"="+how, "GOMAXPROCS=1")
	a.cmd.Stderr = os.Stderr
	out, err := a.cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if a.in, err = a.cmd.StdinPipe(); err != nil {
		return nil, err
	}
	if err := a.cmd.Start(); err != nil {
		return nil, fmt.Errorf("start the attackers: %w", err)
	}
	a.out = bufio.NewScanner(out)
	if !a.out.Scan() || json.Unmarshal(a.out.Bytes(), &a.at) != nil {
		a.close()
		return nil, errors.New("the attackers do not report their addresses: does the program call abuse.Main first?")
	}
	return a, nil
}

func (a *attackers) send(o command) (t reply, err error) {
	b, err := json.Marshal(o)
	if err != nil {
		return t, err
	}
	if _, err := a.in.Write(append(b, '\n')); err != nil {
		return t, fmt.Errorf("command the attackers: %w", err)
	}
	if !a.out.Scan() {
		return t, errors.New("the attackers have ended")
	}
	if err := json.Unmarshal(a.out.Bytes(), &t); err != nil {
		return t, err
	}
	if t.Problem != "" {
		return t, errors.New(t.Problem)
	}
	return t, nil
}

func (a *attackers) setTarget(t Target) error {
	_, err := a.send(command{Aim: &t})
	return err
}

func (a *attackers) start(name string) (note string, err error) {
	t, err := a.send(command{Start: name})
	return t.Note, err
}

func (a *attackers) hits() (n int, err error) {
	t, err := a.send(command{Hits: true})
	return t.Hits, err
}

// reach returns how far the attack has come.
func (a *attackers) reach() (Reach, error) {
	t, err := a.send(command{Hits: true})
	return t.Reach, err
}

// stop ends all attacks and returns how far they came.
func (a *attackers) stop() (r Reach, err error) {
	t, err := a.send(command{Stop: true})
	return t.Reach, err
}

func (a *attackers) close() {
	_ = a.in.Close() // they end with their stdin
	_ = a.cmd.Process.Kill()
	_ = a.cmd.Wait()
}

// attackerProcess is the state of the attackers' process.
type attackerProcess struct {
	Target
	ctx         context.Context // context of the running attacks
	cancel      context.CancelFunc
	all         sync.WaitGroup
	misbehaving atomic.Bool // the clouds and gateways misbehave
	held        atomic.Int64
	most        atomic.Int64
	made        atomic.Int64
	wanted      atomic.Int64
	slow        atomic.Int64
	hits        atomic.Int64
	founded     atomic.Int64 // created workspaces
	founding    time.Time    // start of their creation
	mu          sync.Mutex
	// pushPaths are the paths for vendor events, with the secrets of accounts.
	pushPaths []string
	// connections that the limit of open files allows
	room int
}

func attack() {
	if os.Getenv(attackerVariable) == "nice" {
		_ = syscall.Setpriority(syscall.PRIO_PROCESS, 0, 19) // leave the processors to the server
	}
	f := &attackerProcess{}
	var limit syscall.Rlimit
	if syscall.Getrlimit(syscall.RLIMIT_NOFILE, &limit) == nil {
		limit.Cur = limit.Max
		// the attack reports a limit that is too low
		_ = syscall.Setrlimit(syscall.RLIMIT_NOFILE, &limit)
		_ = syscall.Getrlimit(syscall.RLIMIT_NOFILE, &limit)
	}
	f.room = int(min(limit.Cur, 1<<20)) - 100
	web, err := net.Listen("tcp", "127.0.0.1:0") //nolint:noctx // until the process ends
	if err == nil {
		var broker net.Listener
		if broker, err = net.Listen("tcp", "127.0.0.1:0"); err == nil { //nolint:noctx // until the process ends
			go f.brokers(broker)
			go http.Serve(web, f.clouds()) //nolint:errcheck,gosec // until the process ends
			answer(places{"http://" + web.Addr().String(), broker.Addr().String()})
		}
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return
	}
	f.reset()
	for orders := bufio.NewScanner(os.Stdin); orders.Scan(); {
		var o command
		if err := json.Unmarshal(orders.Bytes(), &o); err != nil {
			answer(reply{Problem: err.Error()})
			continue
		}
		answer(f.handle(o))
	}
}

func answer(v any) {
	b, _ := json.Marshal(v)          //nolint:errchkjson // our own type
	os.Stdout.Write(append(b, '\n')) //nolint:errcheck // the commanding process notices the end
}

func (f *attackerProcess) reset() {
	f.ctx, f.cancel = context.WithCancel(context.Background())
	f.misbehaving.Store(false)
	for _, n := range []*atomic.Int64{&f.most, &f.made, &f.wanted, &f.slow, &f.hits, &f.founded} {
		n.Store(0)
	}
}

func (f *attackerProcess) handle(o command) reply {
	switch {
	case o.Aim != nil:
		f.Target = *o.Aim
	case o.Hits:
		return reply{
			Hits:  int(f.hits.Load()),
			Reach: Reach{Made: int(f.made.Load()), Wanted: int(f.wanted.Load()), Room: f.room},
		}
	case o.Stop:
		f.cancel()
		f.all.Wait()
		r := Reach{
			Connections: int(f.most.Load()),
			Made:        int(f.made.Load()),
			Wanted:      int(f.wanted.Load()),
			Room:        f.room,
			Slow:        int(f.slow.Load()),
		}
		if r.Workspaces = int(f.founded.Load()); r.Workspaces > 0 {
			r.MayMake = int(ratelimit.WorkspacesPerMinute * (1 + time.Since(f.founding).Minutes()))
		}
		f.reset()
		return reply{Reach: r}
	case attacks[o.Start] == nil:
		return reply{Problem: "there is no attack " + o.Start}
	default:
		return reply{Note: attacks[o.Start](f)}
	}
	return reply{}
}

// dial connects from one of many addresses, never that of the healthy client.
func (f *attackerProcess) dial(n int) (net.Conn, error) {
	return f.dialWith(n, 0)
}

func (f *attackerProcess) dialWith(n, buffer int) (net.Conn, error) {
	d := net.Dialer{Timeout: 10 * time.Second, LocalAddr: &net.TCPAddr{IP: net.IPv4(127, 0, 1, byte(1+n%16))}}
	if buffer > 0 {
		d.Control = func(_, _ string, c syscall.RawConn) error {
			return c.Control(
				func(fd uintptr) { _ = syscall.SetsockoptInt(int(fd), syscall.SOL_SOCKET, syscall.SO_RCVBUF, buffer) },
			)
		}
	}
	c, err := d.DialContext(f.ctx, "tcp", f.host())
	if err != nil {
		return nil, err
	}
	f.made.Add(1)
	for n := f.held.Add(1); ; {
		most := f.most.Load()
		if n <= most || f.most.CompareAndSwap(most, n) {
			break
		}
	}
	ended := context.AfterFunc(f.ctx, func() { c.Close() }) //nolint:errcheck // it is given up
	return &counted{Conn: c, gone: sync.OnceFunc(func() { f.held.Add(-1); ended() })}, nil
}

// counted is a connection that is counted until it is closed.
type counted struct {
	net.Conn
	gone func()
}

func (c *counted) Close() error {
	c.gone()
	return c.Conn.Close()
}

func (f *attackerProcess) host() string { return f.URL[len("http://"):] }

// loop runs one n times concurrently until the attack ends. Each run that has ended starts again after pause.
func (f *attackerProcess) loop(n int, pause time.Duration, one func(n int)) {
	ctx := f.ctx
	f.wanted.Add(int64(n))
	for i := range n {
		f.all.Go(func() {
			for ctx.Err() == nil {
				one(i)
				f.rest(ctx, pause)
			}
		})
	}
}

func (f *attackerProcess) rest(ctx context.Context, d time.Duration) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return true
	case <-ctx.Done():
		return false
	}
}
