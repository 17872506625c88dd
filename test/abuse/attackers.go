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

	"github.com/deviceaccess/terraform-provider-deviceaccess/server/rest"
)

const attackerVariable = "DEVICEACCESS_HOSTILE_ATTACKER"

// Target is whom the attackers attack, with a credential that is good: the worst are customers.
type Target struct {
	URL, Key, Device string
	Roamer           string  // a personal access token; empty: they have none yet
	Houses           []house // nil: they have none yet
}

// places are where the attackers listen.
type places struct{ Cloud, Broker string }

// order is what the attackers are told, one a line; told is what they answer.
type order struct {
	Aim   *Target `json:",omitempty"`
	Begin string  `json:",omitempty"`
	Hits  bool    `json:",omitempty"` // how often has the server spoken to who misbehaves, and made a workspace? How many connections were made?
	Cease bool    `json:",omitempty"`
}

type told struct {
	Note    string
	Hits    int
	Reach   Reach
	Problem string
}

// Reach is how far an attack came.
type Reach struct {
	Connections int // that were held at once, at most: the server ends those that are too many
	Made        int // in all
	Wanted      int // to be made
	Room        int // for connections, that the limit of open files leaves
	Slow        int // connections on which a header was still being sent after headerEnds
	Workspaces  int // that were made with one token
	MayMake     int // that the server lets it make by then
}

// attackers are a process of their own.
type attackers struct {
	cmd *exec.Cmd
	in  io.WriteCloser
	out *bufio.Scanner
	at  places
}

// startAttackers starts them, at the lowest priority where what the server takes of the processors is measured.
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
		a.end()
		return nil, errors.New("the attackers do not say where they listen: does the program call hostile.Main first?")
	}
	return a, nil
}

func (a *attackers) tell(o order) (t told, err error) {
	b, err := json.Marshal(o)
	if err != nil {
		return t, err
	}
	if _, err := a.in.Write(append(b, '\n')); err != nil {
		return t, fmt.Errorf("tell the attackers: %w", err)
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

func (a *attackers) aim(t Target) error {
	_, err := a.tell(order{Aim: &t})
	return err
}

func (a *attackers) begin(name string) (note string, err error) {
	t, err := a.tell(order{Begin: name})
	return t.Note, err
}

func (a *attackers) hits() (n int, err error) {
	t, err := a.tell(order{Hits: true})
	return t.Hits, err
}

// reach is how far the attack has come by now.
func (a *attackers) reach() (Reach, error) {
	t, err := a.tell(order{Hits: true})
	return t.Reach, err
}

// cease ends all attacks and says how far they came.
func (a *attackers) cease() (r Reach, err error) {
	t, err := a.tell(order{Cease: true})
	return t.Reach, err
}

func (a *attackers) end() {
	_ = a.in.Close() // they end with it
	_ = a.cmd.Process.Kill()
	_ = a.cmd.Wait()
}

// front is the attackers' process.
type front struct {
	Target
	ctx       context.Context // of the attacks that there are
	cancel    context.CancelFunc
	all       sync.WaitGroup
	angry     atomic.Bool // the clouds and gateways misbehave
	held      atomic.Int64
	most      atomic.Int64
	made      atomic.Int64
	wanted    atomic.Int64
	slow      atomic.Int64
	hits      atomic.Int64
	founded   atomic.Int64 // workspaces
	founding  time.Time    // since when they are made
	mu        sync.Mutex
	pushPaths []string // where the server wants to be told of events, with the secrets of accounts
	room      int      // how many connections the limit of open files leaves
}

func attack() {
	if os.Getenv(attackerVariable) == "nice" {
		_ = syscall.Setpriority(syscall.PRIO_PROCESS, 0, 19) // the processors are the server's
	}
	f := &front{}
	var limit syscall.Rlimit
	if syscall.Getrlimit(syscall.RLIMIT_NOFILE, &limit) == nil {
		limit.Cur = limit.Max
		_ = syscall.Setrlimit(syscall.RLIMIT_NOFILE, &limit) // what cannot be raised is told with the attack
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
		var o order
		if err := json.Unmarshal(orders.Bytes(), &o); err != nil {
			answer(told{Problem: err.Error()})
			continue
		}
		answer(f.obey(o))
	}
}

func answer(v any) {
	b, _ := json.Marshal(v)          //nolint:errchkjson // our own
	os.Stdout.Write(append(b, '\n')) //nolint:errcheck // whoever commands it is told by its end
}

func (f *front) reset() {
	f.ctx, f.cancel = context.WithCancel(context.Background())
	f.angry.Store(false)
	for _, n := range []*atomic.Int64{&f.most, &f.made, &f.wanted, &f.slow, &f.hits, &f.founded} {
		n.Store(0)
	}
}

func (f *front) obey(o order) told {
	switch {
	case o.Aim != nil:
		f.Target = *o.Aim
	case o.Hits:
		return told{Hits: int(f.hits.Load()), Reach: Reach{Made: int(f.made.Load()), Wanted: int(f.wanted.Load()), Room: f.room}}
	case o.Cease:
		f.cancel()
		f.all.Wait()
		r := Reach{Connections: int(f.most.Load()), Made: int(f.made.Load()), Wanted: int(f.wanted.Load()), Room: f.room, Slow: int(f.slow.Load())}
		if r.Workspaces = int(f.founded.Load()); r.Workspaces > 0 {
			r.MayMake = int(rest.WorkspacesPerMinute * (1 + time.Since(f.founding).Minutes()))
		}
		f.reset()
		return told{Reach: r}
	case attacks[o.Begin] == nil:
		return told{Problem: "there is no attack " + o.Begin}
	default:
		return told{Note: attacks[o.Begin](f)}
	}
	return told{}
}

// dial opens a connection from one of many addresses, none of them the healthy client's.
func (f *front) dial(n int) (net.Conn, error) {
	return f.dialWith(n, 0)
}

func (f *front) dialWith(n, buffer int) (net.Conn, error) {
	d := net.Dialer{Timeout: 10 * time.Second, LocalAddr: &net.TCPAddr{IP: net.IPv4(127, 0, 1, byte(1+n%16))}}
	if buffer > 0 {
		d.Control = func(_, _ string, c syscall.RawConn) error {
			return c.Control(func(fd uintptr) { _ = syscall.SetsockoptInt(int(fd), syscall.SOL_SOCKET, syscall.SO_RCVBUF, buffer) })
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

func (f *front) host() string { return f.URL[len("http://"):] }

// many has n go on at once, each until the attack ends: whoever has ended begins again after a pause.
func (f *front) many(n int, pause time.Duration, one func(n int)) {
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

func (f *front) rest(ctx context.Context, d time.Duration) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return true
	case <-ctx.Done():
		return false
	}
}
