package chaos_test

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"reflect"
	"slices"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/deviceaccess/terraform-provider-deviceaccess/server/store/storetest"
)

// rolling is clients that send each request once, and their results.
type rolling struct {
	*client
	pace     time.Duration // delay before each action
	mu       sync.Mutex
	answered map[string]int
	lost     []string
	longest  time.Duration // until a response
}

// request sends a request once.
func (r *rolling) request(ctx context.Context, http *http.Client, path string, in map[string]any) (a answer) {
	return r.named(ctx, http, path, "", in)
}

// named is request with an Idempotency-Key, unless it is empty.
func (r *rolling) named(ctx context.Context, http *http.Client, path, key string, in map[string]any) (a answer) {
	body, err := json.Marshal(in)
	if err != nil {
		panic(err)
	}
	begun := time.Now()
	a, err = (&client{url: r.url, key: r.key, http: http}).once(ctx, path, key, body)
	r.mu.Lock()
	defer r.mu.Unlock()
	r.longest = max(r.longest, time.Since(begun))
	if err != nil || a.status >= 500 || a.status == 0 {
		r.lost = append(
			r.lost,
			fmt.Sprintf(
				"%s %s %d %s: %v",
				time.Now().Format(time.StampMilli),
				path,
				a.status,
				a.text("error", "type"),
				err,
			),
		)
	} else {
		r.answered[fmt.Sprint(path, " ", a.status)]++
	}
	return a
}

func (r *rolling) total() (n int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return total(r.answered)
}

// live creates, changes, and deletes codes on a lock, lists them, and waits for a bolt. A rejected request counts as
// lost.
func (r *rolling) live(ctx context.Context, http *http.Client, device string, locks int) {
	for n := 0; ctx.Err() == nil; n++ {
		wait(ctx, r.pace)
		whole := context.WithoutCancel(ctx) // so that the end of ctx loses no request
		good := func(path string, in map[string]any) answer {
			a := r.request(whole, http, path, in)
			r.check(fmt.Sprint(path, ", ", a.status), a.status == 200)
			return a
		}
		id := good(
			"/access_codes/create",
			map[string]any{"device_id": device, "name": fmt.Sprint("Guest ", n)},
		).text("access_code", "access_code_id")
		all, _ := good("/locks/list", map[string]any{"limit": 50}).body["devices"].([]any)
		r.check(fmt.Sprintf("/locks/list, with %d of %d devices", len(all), locks), len(all) == locks)
		good("/access_codes/update", map[string]any{"access_code_id": id, "name": fmt.Sprint("Other ", n)})
		if n%5 == 0 {
			good("/locks/lock_door", map[string]any{"device_id": device, "sync": true})
		}
		good("/access_codes/delete", map[string]any{"access_code_id": id})
	}
}

// office creates, changes, and deletes webhooks without events, people, and sessions. It sends each request twice with
// one key, the second time usually to another server.
func (r *rolling) office(ctx context.Context, http *http.Client, endpoint string) {
	for n := 0; ctx.Err() == nil; n++ {
		wait(ctx, r.pace)
		whole := context.WithoutCancel(ctx)
		for _, kind := range []struct {
			path, name string
			in, change map[string]any
			again      bool
		}{
			{
				"/webhooks",
				"webhook",
				map[string]any{"url": endpoint, "event_types": []string{"connect_webview.login_failed"}},
				map[string]any{"event_types": []string{"device.deleted"}},
				true,
			},
			{
				"/user_identities",
				"user_identity",
				map[string]any{"full_name": fmt.Sprint("Person ", n)},
				map[string]any{"full_name": fmt.Sprint("Other ", n)},
				true,
			},
			{
				"/client_sessions",
				"client_session",
				map[string]any{"user_identifier_key": fmt.Sprint("person ", n)},
				nil,
				false,
			}, // a stored response with a token is bound to a version
		} {
			key := fmt.Sprint(kind.name, " ", n)
			made := r.named(whole, http, kind.path+"/create", key, kind.in)
			if kind.again {
				r.check(
					kind.path+"/create again",
					reflect.DeepEqual(made, r.named(whole, http, kind.path+"/create", key, kind.in)),
				)
			}
			id := made.text(kind.name, kind.name+"_id")
			r.check(kind.path+"/create", id != "")
			if kind.change != nil {
				kind.change[kind.name+"_id"] = id
				r.check(kind.path+"/update", r.request(whole, http, kind.path+"/update", kind.change).status == 200)
			}
			r.check(
				kind.path+"/get",
				r.request(whole, http, kind.path+"/get", map[string]any{kind.name + "_id": id}).status == 200,
			)
			r.check(
				kind.path+"/delete",
				r.request(whole, http, kind.path+"/delete", map[string]any{kind.name + "_id": id}).status == 200,
			)
		}
	}
}

// check counts a wrong response as lost.
func (r *rolling) check(what string, good bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if !good {
		r.lost = append(r.lost, what+" is not answered as it should be")
	}
}

// goOn waits until requests are answered.
func (r *rolling) goOn(t testing.TB) {
	t.Helper()
	before := r.total()
	until(t, "requests are answered", func() bool { return r.total() > before+20 })
}

// restart restarts a server while requests are answered, and returns when the balancer uses it again.
func (r *rolling) restart(s *storm, i *instance) {
	s.Helper()
	r.goOn(s)
	i.end(syscall.SIGTERM)
	until(
		s,
		"the balancer has noticed that it was away",
		func() bool { return !s.balancer.has(i.addr) || i.answers(s) },
	)
	until(s, "it is back", func() bool { return i.answers(s) && s.balancer.has(i.addr) })
}

// Three servers are restarted one after another, as for an upgrade, under constant load, with one connection per
// request and with persistent ones. The balancer uses /health. No client retries, except the staff of access systems,
// whose responses are compared with the systems. With CHAOS_FROM, the first round of the long form (CHAOS_ROUNDS) is an
// upgrade from that commit.
func TestRollingRestart_LosesNoRequest(t *testing.T) {
	t.Parallel()
	storetest.NeedPostgres(t)
	rounds, program, long := number(t, "CHAOS_ROUNDS", 1), build(t), isLong("CHAOS_ROUNDS")
	first := program
	var from *upgrade
	if long {
		if from = newUpgrade(t, program); from != nil {
			first = from.older
		}
	}
	s := newStorm(t, first, long)
	s.allWell("all servers are well")
	r := &rolling{client: s.guests[0].client, pace: s.guests[0].pace, answered: map[string]int{}}
	loading, stop := context.WithCancel(t.Context())
	var living sync.WaitGroup
	t.Cleanup(living.Wait)
	t.Cleanup(stop)
	devices := s.locks[:min(len(s.locks), 6)]
	for n, device := range devices {
		kept := &http.Transport{DisableKeepAlives: n%2 == 0, MaxIdleConnsPerHost: 1}
		t.Cleanup(kept.CloseIdleConnections)
		living.Go(func() { r.live(loading, &http.Client{Transport: kept}, device, len(s.locks)) })
	}
	kept := &http.Transport{DisableKeepAlives: true}
	living.Go(func() { r.office(loading, &http.Client{Transport: kept}, "http://"+s.endpoints.addr+"/fast/") })
	s.staff = newStaff(s, s.seed)
	living.Go(func() { s.staff.live(t.Context(), loading) })
	restarts := 0
	for round := range rounds {
		if round == 0 && from != nil {
			restarts += r.upgrade(s, from)
			continue
		}
		for _, i := range s.instances {
			r.restart(s, i)
			restarts++
		}
	}
	r.goOn(s)
	stop()
	living.Wait()
	r.mu.Lock()
	defer r.mu.Unlock()
	if from != nil {
		if from.mixed == 0 {
			t.Error("no request was answered while both versions ran")
		}
		t.Logf(
			"from %s with %d migrations; migrations added while two servers of it ran: %d; requests answered while both "+
				"versions ran: %d; the longest of all took %s",
			from.commit,
			from.schema,
			from.added,
			from.mixed,
			r.longest.Round(10*time.Millisecond),
		)
	}
	t.Logf("%d restarts, %d requests answered, %d lost", restarts, total(r.answered), len(r.lost))
	for _, name := range slices.Sorted(maps.Keys(r.answered)) {
		t.Logf("%6d  %s", r.answered[name], name)
	}
	if len(r.lost) > 0 {
		t.Errorf("%d requests were lost: %v", len(r.lost), r.lost[:min(len(r.lost), 10)])
	}
	t.Log(s.oneAtATime(t.Errorf))
	for _, i := range s.instances {
		if i.byItself > 0 {
			t.Errorf("a server did not end in good order %d times", i.byItself)
		}
	}
	if len(r.lost) == 0 { // a code whose creation got no response is never deleted
		t.Logf("%d events, each at two endpoints", s.nothingIsLeft(devices))
		t.Log(s.judgeStaff(t.Errorf))
	}
}

// answers reports whether the server is healthy.
func (i *instance) answers(t testing.TB) bool {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Second)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+i.addr+"/health", nil)
	if err != nil {
		t.Fatal(err)
	}
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		return false
	}
	res.Body.Close()
	return res.StatusCode == http.StatusOK
}
