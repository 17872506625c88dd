package abuse

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"path"
	"strings"
	"sync"
	"time"
)

// misbehaviour is the response to every request.
type misbehaviour struct {
	name   string
	answer func(f *attackerProcess, w http.ResponseWriter, r *http.Request)
}

// misbehaviours are those of clouds and webhook endpoints.
var misbehaviours = []misbehaviour{
	{"endless", endless(`{"locks":[],"systems":[],"a":"`, "a")},
	{"endless-lists", endless(`{"locks":[`, `{},`)},
	{"endless-systems", endless(`{"systems":[`, `{},`)},
	{
		"many",
		whole(
			`{"locks":[` + repeated(
				`{"lock_id":"l%d","name":"`+strings.Repeat("n", 30)+`"}`,
				100_000,
			) + `],"systems":[` + repeated(
				`{"system_id":"s%d"}`,
				100_000,
			) + `]}`,
		),
	},
	{
		"nulls",
		whole(
			`{"locks":[` + strings.Repeat(
				"null,",
				1_600_000,
			) + `null],"systems":[` + strings.Repeat(
				"null,",
				1_600_000,
			) + `null]}`,
		),
	},
	{
		"long",
		whole(
			`{"locks":[{"lock_id":"a","name":"` + strings.Repeat(
				"n",
				8_000_000,
			) + `"}],"systems":[{"system_id":"a","name":"` + strings.Repeat(
				"n",
				8_000_000,
			) + `"}]}`,
		),
	},
	{
		"lengths",
		whole(
			`{"locks":[{"lock_id":"a","capabilities":{"code_lengths":[` + strings.Repeat(
				"1,",
				4_000_000,
			) + `1]}}],"systems":[]}`,
		),
	},
	{"plausible", plausible},
	{"hang", hang},
	{"garbage", whole(strings.Repeat("\x00\xff<html>", 1000))},
	{"half", whole(`{"locks":[{"lock_id":"`)},
	{"deep", whole(`{"locks":` + strings.Repeat("[", 1_000_000))},
	{"types", whole(`{"locks":[{"lock_id":1,"name":{},"online":"x","battery_level":"1e999"}],"systems":{"a":1}}`)},
	{
		"numbers",
		whole(`{"locks":[{"lock_id":"a","battery_level":` + strings.Repeat("9", 5_000_000) + `}],"systems":[]}`),
	},
	{"redirect-itself", redirect("")},
	{"redirect-private", redirect("http://169.254.169.254/latest/meta-data/")},
	{"redirect-file", redirect("file:///etc/passwd")},
	{"endless-headers", raw("HTTP/1.1 200 OK\r\n", "X-A: "+strings.Repeat("a", 1000)+"\r\n", 0)},
	{"slow-headers", raw("HTTP/1.1 200 OK\r\nX-A: ", "a", time.Second)},
	{"hints", raw("", "HTTP/1.1 103 Early Hints\r\nLink: <a>\r\n\r\n", time.Millisecond)},
	{
		"slow",
		raw(
			"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 1000000\r\n\r\n{\"locks\":[",
			" ",
			time.Second,
		),
	},
	{"held", held},
	{"cut", raw("HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\n{\"locks\":", "", -1)},
	{
		"switch",
		raw(
			"HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\nConnection: Upgrade\r\n\r\n",
			strings.Repeat("a", 1000),
			time.Millisecond,
		),
	},
	{"bomb", bomb},
	{"never", func(f *attackerProcess, _ http.ResponseWriter, r *http.Request) { f.rest(r.Context(), time.Hour) }},
}

// floods are the misbehaviors of gateways.
var floods = []string{
	"flood",
	"endless-frame",
	"big-frames",
	"deep-frames",
	"many-nodes",
	"nulls",
	"handshake",
	"hello",
	"names",
}

func repeated(format string, n int) string {
	var b strings.Builder
	for i := range n {
		if i > 0 {
			b.WriteByte(',')
		}
		fmt.Fprintf(&b, format, i)
	}
	return b.String()
}

// clouds returns a handler for /locks-of/<how>, /doors-of/<how>, /endpoint/<how>/<n>, /gateway/<how>, and /mqtt/<how>.
func (f *attackerProcess) clouds() http.Handler {
	by := map[string]misbehaviour{}
	for _, m := range misbehaviours {
		by[m.name] = m
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		part := strings.Split(r.URL.Path+"//", "/")
		switch {
		case part[1] == "gateway":
			f.gateway(w, r, part[2])
		case part[1] == "mqtt":
			f.webBroker(w, r, part[2])
		case part[1] == "locks-of" && part[3] == "webhooks" && r.Method == http.MethodPost:
			f.hears(r) // hostile accounts learn their secret here
			w.WriteHeader(http.StatusNoContent)
		case f.misbehaving.Load() && by[part[2]].answer != nil:
			f.hits.Add(1)
			by[part[2]].answer(f, w, r)
		default:
			w.Header().Set("Content-Type", "application/json")
			io.WriteString(w, `{"locks":[],"systems":[],"webhooks":[]}`) //nolint:errcheck // a friend's
		}
	})
}

// hears stores the path for vendor events, which contains the secret of an account.
func (f *attackerProcess) hears(r *http.Request) {
	var wish struct {
		URL string `json:"url"`
	}
	if json.NewDecoder(r.Body).Decode(&wish) != nil {
		return
	}
	if at, err := url.Parse(wish.URL); err == nil {
		f.mu.Lock()
		defer f.mu.Unlock()
		f.pushPaths = append(f.pushPaths, at.Path)
	}
}

// pace limits the rate of sending, because the attackers have little processor time.
const pace = 2 * time.Millisecond

func endless(begin, more string) func(*attackerProcess, http.ResponseWriter, *http.Request) {
	block := strings.Repeat(more, 64<<10/len(more))
	return func(f *attackerProcess, w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		io.WriteString(w, begin) //nolint:errcheck // shows next
		for f.rest(r.Context(), pace) && f.misbehaving.Load() {
			if _, err := io.WriteString(w, block); err != nil {
				return
			}
		}
	}
}

func whole(body string) func(*attackerProcess, http.ResponseWriter, *http.Request) {
	return func(_ *attackerProcess, w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		io.WriteString(w, body) //nolint:errcheck // it may be cut off
	}
}

// contents is the response of a cloud of maximum size: each request returns everything.
var contents = sync.OnceValue(func() string {
	const name = `"name":"of a door, as a person may have called it"`
	return `{"locks":[` + repeated(
		`{"lock_id":"l%d",`+name+`}`,
		1000,
	) + `],"access_codes":[` + repeated(
		`{"access_code_id":"c%d","status":"set","code":"1234567",`+name+`}`,
		5000,
	) +
		`],"systems":[` + repeated(
		`{"system_id":"s%d",`+name+`}`,
		50,
	) + `],"users":[` + repeated(
		`{"user_id":"u%d","full_name":"A name as people have","email":"user.one@example.com","group_ids":["g1","g2"]}`,
		10_000,
	) +
		`],"groups":[],"entrances":[]}`
})

func plausible(_ *attackerProcess, w http.ResponseWriter, _ *http.Request) {
	w.Header().Set("Content-Type", "application/json")
	io.WriteString(w, contents()) //nolint:errcheck // it may be cut off
}

// absent is a list of locks and systems that do not respond.
var absent = sync.OnceValue(func() string {
	return `{"locks":[` + repeated(
		`{"lock_id":"l%d"}`,
		500,
	) + `],"systems":[` + repeated(
		`{"system_id":"s%d"}`,
		250,
	) + `]}`
})

// hang lists many devices, none of which responds.
func hang(f *attackerProcess, w http.ResponseWriter, r *http.Request) {
	if list := path.Base(r.URL.Path); r.Method == http.MethodGet && (list == "locks" || list == "systems") {
		io.WriteString(w, absent()) //nolint:errcheck // it may be cut off
		return
	}
	f.rest(r.Context(), time.Hour)
}

func redirect(to string) func(*attackerProcess, http.ResponseWriter, *http.Request) {
	return func(_ *attackerProcess, w http.ResponseWriter, r *http.Request) {
		if to == "" {
			http.Redirect(w, r, r.URL.Path, http.StatusTemporaryRedirect)
			return
		}
		http.Redirect(w, r, to, http.StatusFound)
	}
}

// raw writes an invalid response: begin, and then more repeatedly; with a negative pause only begin.
func raw(begin, more string, pause time.Duration) func(*attackerProcess, http.ResponseWriter, *http.Request) {
	return func(f *attackerProcess, w http.ResponseWriter, _ *http.Request) {
		ctx := f.ctx
		c, _, err := http.NewResponseController(w).Hijack()
		if err != nil {
			return
		}
		defer c.Close() //nolint:errcheck // it may be closed already
		_, err = io.WriteString(c, begin)
		for err == nil && pause >= 0 && f.rest(ctx, max(pause, time.Millisecond/5)) {
			_, err = io.WriteString(c, more)
		}
	}
}

// held sends nearly eight megabytes and then stops.
func held(f *attackerProcess, w http.ResponseWriter, r *http.Request) {
	io.WriteString(w, `{"locks":[{"name":"`+strings.Repeat("a", 7_900_000)) //nolint:errcheck // it may be cut off
	_ = http.NewResponseController(w).Flush()
	f.rest(r.Context(), time.Hour)
}

// zipped is a gigabyte of blanks, compressed.
var zipped = sync.OnceValue(func() []byte {
	var b bytes.Buffer
	z := gzip.NewWriter(&b)
	io.WriteString(z, `{"locks":[`) //nolint:errcheck // to memory
	for block := bytes.Repeat([]byte(" "), 1<<20); b.Len() < 1<<20; {
		z.Write(block) //nolint:errcheck // to memory
	}
	z.Close() //nolint:errcheck // to memory
	return b.Bytes()
})

func bomb(_ *attackerProcess, w http.ResponseWriter, _ *http.Request) {
	w.Header().Set("Content-Encoding", "gzip")
	w.Write(zipped()) // it may be cut off
}
