package chaos_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"math"
	"math/rand/v2"
	"net/http"
	"slices"
	"sync"
	"time"

	"github.com/google/uuid"
)

// client sends requests to the servers behind a balancer, and retries until it gets a response.
type client struct {
	url, key string
	http     *http.Client

	mu      sync.Mutex
	answers int            // final ones
	again   int            // retries
	asked   map[string]int // answered requests by path
	refused map[string]int
}

// answer is a final response.
type answer struct {
	status int
	body   map[string]any
}

func (a answer) text(path ...string) string {
	var at any = a.body
	for _, p := range path {
		m, _ := at.(map[string]any)
		at = m[p]
	}
	s, _ := at.(string)
	return s
}

// refusal describes a rejected request.
func (a answer) refusal(path string) string {
	return fmt.Sprintf("%s %d %s %s", path, a.status, a.text("error", "type"), a.text("error", "message"))
}

// ask sends a request with one Idempotency-Key until it gets a response, or until ctx ends. ok reports whether there
// was a response.
func (c *client) ask(ctx context.Context, path string, in map[string]any) (a answer, ok bool) {
	body, err := json.Marshal(in)
	if err != nil {
		panic(err)
	}
	key := uuid.NewString()
	for n := 0; ctx.Err() == nil; n++ {
		if n > 0 {
			c.mu.Lock()
			c.again++
			c.mu.Unlock()
			select { // do not retry in a busy loop
			case <-ctx.Done():
				return a, false
			case <-time.After(50 * time.Millisecond):
			}
		}
		if a, err = c.once(
			ctx,
			path,
			key,
			body,
		); err != nil || a.status >= 500 ||
			a.text("error", "type") == "idempotency_key_in_use" ||
			n > 0 && a.status == http.StatusTooManyRequests { // says nothing about the earlier tries
			continue
		}
		c.mu.Lock()
		defer c.mu.Unlock()
		c.answers++
		c.asked[path]++
		if a.status != http.StatusOK {
			c.refused[a.refusal(path)]++
		}
		return a, true
	}
	return a, false
}

func (c *client) once(ctx context.Context, path, key string, body []byte) (a answer, err error) {
	ctx, cancel := context.WithTimeout(ctx, 40*time.Second) // a frozen server does not respond
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, c.url+path, bytes.NewReader(body))
	if err != nil {
		return a, err
	}
	req.Header.Set("Authorization", "Bearer "+c.key)
	req.Header.Set("Content-Type", "application/json")
	if key != "" {
		req.Header.Set("Idempotency-Key", key)
	}
	res, err := c.http.Do(req)
	if err != nil {
		return a, err
	}
	defer res.Body.Close()
	raw, err := io.ReadAll(res.Body)
	if err != nil {
		return a, err
	}
	a.status = res.StatusCode
	return a, json.Unmarshal(raw, &a.body)
}

func (c *client) answered() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.answers
}

// owned is a code that a guest knows.
type owned struct {
	id, device, name, pin string    // an empty pin means that the vendor chooses it
	adopted               bool      // it was on the lock before
	converting            string    // the attempt of its conversion
	converted             bool      // the conversion succeeded, so it counts as created here
	removing              string    // the attempt of its accepted deletion, if it has one
	removed               bool      // its deletion was accepted
	ends                  time.Time // zero if it does not end
}

// pace is the delay of guests and staff before each action in the short form, so that the load is the same on every
// machine.
const pace = 150 * time.Millisecond

// wait waits for d or until ctx ends.
func wait(ctx context.Context, d time.Duration) {
	if d <= 0 {
		return
	}
	select {
	case <-time.After(d):
	case <-ctx.Done():
	}
}

// guests create, change, adopt, and delete codes on their own locks.
type guests struct {
	*client
	pace     time.Duration // delay before each action
	random   *rand.Rand
	devices  []string
	codes    map[string]*owned // by id
	deleted  map[string]*owned
	ended    map[string]*owned // ended codes that no guest has deleted
	made     map[string]int    // requested creations by name
	byHand   map[string]bool   // put on locks outside the API, by device and PIN
	bolts    map[string]bool   // lock command attempts
	tries    []string          // action attempts
	outcomes map[string]string // their final status
	did      map[string]int    // by operation
}

func newGuests(c *client, seed uint64, devices []string) *guests {
	return &guests{
		client:  c,
		random:  rand.New(rand.NewPCG(seed, 1)),
		devices: devices,
		codes:   map[string]*owned{},
		deleted: map[string]*owned{},
		ended:   map[string]*owned{},
		made:    map[string]int{},
		byHand:  map[string]bool{},
		bolts:   map[string]bool{},
		did:     map[string]int{},
	}
}

// perLock is the number of codes that guests keep on a lock: fewer than any lock has room for.
const perLock = 4

// deeds are what the guests together do at least, even if loading ends early.
var deeds = []string{
	"create",
	"update",
	"delete",
	"convert",
	"update of a converted one",
	"delete of a converted one",
	"update of an end",
}

// hasDone reports whether each action was done.
func hasDone(did map[string]int, all []string) bool {
	return !slices.ContainsFunc(all, func(what string) bool { return did[what] == 0 })
}

// live acts until loading ends. It completes started actions while ctx allows.
func (g *guests) live(ctx, loading context.Context) {
	for n := 0; loading.Err() == nil; n++ {
		wait(loading, g.pace)
		g.act(ctx, n)
	}
}

// act does one thing.
func (g *guests) act(ctx context.Context, n int) {
	device := g.devices[g.random.IntN(len(g.devices))]
	var here []*owned
	for _, id := range slices.Sorted(maps.Keys(g.codes)) {
		switch c := g.codes[id]; {
		case c.isOver():
			g.parts(c)
		case c.device == device:
			here = append(here, c)
		}
	}
	switch act := g.random.IntN(11); {
	case act == 10:
		g.moveBolt(ctx, device)
	case len(here) == 0, act < 4 && len(here) < perLock:
		if g.random.IntN(4) == 0 {
			g.adopt(ctx, device, fmt.Sprintf("Found %d", n))
		} else {
			g.create(ctx, device, n)
		}
	case act < 7:
		g.change(ctx, here[g.random.IntN(len(here))], n)
	default:
		c := here[g.random.IntN(len(here))]
		if c.ends.IsZero() || g.random.IntN(3) == 0 { // the others live until they end
			g.delete(ctx, c)
		}
	}
}

// shortPIN is the length up to which a PIN can occur by chance in other numbers.
const shortPIN = 5

// unlikeNumbers returns a PIN that occurs nowhere else, since numbers do not start with 0. So any leak of it can be
// found.
func (g *guests) unlikeNumbers(digits int) string {
	return fmt.Sprintf("0%0*d", digits-1, g.random.Int64N(int64(math.Pow10(digits-1))))
}

func (g *guests) create(ctx context.Context, device string, n int) {
	name := fmt.Sprintf("%s %d", device[len(device)-4:], n) // some locks have room for 12 characters
	g.made[name]++
	in := map[string]any{"device_id": device, "name": name, "preferred_code_length": 8}
	var ends time.Time
	if g.random.IntN(3) == 0 {
		ends = g.soonEnd()
		in["starts_at"], in["ends_at"] = time.Now().UTC().Truncate(time.Second), ends
	}
	a, ok := g.ask(ctx, "/access_codes/create", in)
	if ok && a.status == http.StatusOK {
		g.did["create"]++
		g.codes[a.text("access_code", "access_code_id")] = &owned{
			id:     a.text("access_code", "access_code_id"),
			device: device,
			name:   name,
			pin:    a.text("access_code", "code"),
			ends:   ends,
		}
	}
}

func (g *guests) change(ctx context.Context, c *owned, n int) {
	if c.adopted && !c.converted {
		switch g.learn(ctx, c) {
		case "success":
		case "error":
			g.delete(ctx, c)
			return
		default: // in progress
			return
		}
	}
	in := map[string]any{"access_code_id": c.id}
	name, pin, ends := c.name, c.pin, c.ends
	if !ends.IsZero() && g.random.IntN(4) == 0 {
		ends = g.soonEnd()
		in["ends_at"] = ends
	} else if g.random.IntN(2) == 0 {
		name = fmt.Sprintf("changed %d", n%1000)
		in["name"] = name
	} else if len(pin) > shortPIN {
		pin = g.unlikeNumbers(len(pin))
		in["code"] = pin
	} else {
		free, ok := g.ask(ctx, "/access_codes/generate_code", map[string]any{"device_id": c.device})
		if !ok || free.status != http.StatusOK {
			return
		}
		pin = free.text("generated_code", "code")
		in["code"] = pin
	}
	a, ok := g.ask(ctx, "/access_codes/update", in)
	if !ok || a.status != http.StatusOK {
		g.refusedAsOver("/access_codes/update", c, a)
		return
	}
	g.did["update"]++
	if c.converted {
		g.did["update of a converted one"]++
	}
	if ends != c.ends {
		g.did["update of an end"]++
	}
	c.name, c.pin, c.ends = name, pin, ends
	g.remembers(a)
}

// remembers records the attempt in a response, if any.
func (g *guests) remembers(a answer) {
	if id := a.text("action_attempt", "action_attempt_id"); id != "" {
		g.tries = append(g.tries, id)
	}
}

func (g *guests) delete(ctx context.Context, c *owned) {
	path := "/access_codes/delete"
	if c.adopted && !c.converted {
		path = "/access_codes/unmanaged/delete"
	}
	a, ok := g.ask(ctx, path, map[string]any{"access_code_id": c.id})
	if ok && a.status == http.StatusNotFound && c.adopted && !c.converted { // it is managed by now
		a, ok = g.ask(ctx, "/access_codes/delete", map[string]any{"access_code_id": c.id})
	}
	if g.refusedAsOver(path, c, a) {
		return
	}
	if ok && (a.status == http.StatusOK || a.status == http.StatusNotFound) {
		g.did["delete"]++
		if c.converted {
			g.did["delete of a converted one"]++
		}
		delete(g.codes, c.id)
		g.deleted[c.id] = c
		c.removed, c.removing = a.status == http.StatusOK, a.text("action_attempt", "action_attempt_id")
		if c.removing != "" {
			g.tries = append(g.tries, c.removing)
		}
	}
}
