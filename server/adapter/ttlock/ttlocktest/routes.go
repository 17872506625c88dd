package ttlocktest

import (
	"cmp"
	"encoding/json"
	"hash/fnv"
	"net/http"
	"slices"
	"strconv"
	"time"
)

// capacity is the number of custom codes of a lock.
const capacity = 250

// later is the number of reads of the list after which a lock has fetched a command.
const later = 1

type object = map[string]any

// request is one call.
type request struct {
	*http.Request
	lock *lock
}

func (r request) int(name string) int64 {
	n, _ := strconv.ParseInt(r.FormValue(name), 10, 64) // the description demands numbers
	return n
}

func (r request) time(name string) time.Time {
	if n := r.int(name); n > 0 {
		return time.UnixMilli(n)
	}
	return time.Time{}
}

// routes returns the handler of the API. Each function returns an answer, or an errcode.
func (s *Server) routes() http.Handler {
	mux := http.NewServeMux()
	handle := func(pattern string, do func(request) (any, int)) {
		mux.HandleFunc(pattern, func(w http.ResponseWriter, r *http.Request) {
			answer, errcode := s.serve(request{Request: r}, do)
			if errcode != 0 {
				answer = object{"errcode": errcode, "errmsg": "failed for " + r.FormValue("keyboardPwd")}
			} else if answer == nil {
				answer = object{"errcode": 0, "errmsg": "none error message"}
			}
			w.Header().Set("Content-Type", "application/json")
			_ = json.NewEncoder(w).Encode(answer) // the client may have gone
		})
	}
	handle("POST /oauth2/token", s.token)
	handle("GET /v3/lock/list", s.listLocks)
	handle("GET /v3/lock/detail", s.detail)
	handle("GET /v3/lock/queryOpenState", s.command(func(r request) (any, int) {
		return object{"state": map[bool]int{false: 0, true: 1}[r.lock.unlocked]}, 0
	}))
	handle("POST /v3/lock/lock", s.command(func(r request) (any, int) { return s.move(r, false) }))
	handle("POST /v3/lock/unlock", s.command(func(r request) (any, int) { return s.move(r, true) }))
	handle("POST /v3/lock/setAutoLockTime", s.command(func(r request) (any, int) {
		if r.int("seconds") > 900 {
			return nil, -4082
		}
		r.lock.autoLock = int(r.int("seconds"))
		return nil, 0
	}))
	handle("GET /v3/lock/listKeyboardPwd", s.listCodes)
	handle("POST /v3/keyboardPwd/add", s.command(s.add))
	handle("POST /v3/keyboardPwd/change", s.command(s.changeCode))
	handle("POST /v3/keyboardPwd/delete", s.command(s.deleteCode))
	handle("POST /v3/keyboardPwd/get", s.issue)
	handle("GET /v3/gateway/list", s.listGateways)
	handle("GET /v3/gateway/listByLock", s.gatewaysOfLock)
	handle("GET /v3/gateway/listLock", s.locksOfGateway)
	handle("POST /v3/wifiLock/detail", s.wifi)
	handle("GET /v3/lockRecord/list", s.listRecords)
	return mux
}

// serve checks what all calls have in common.
func (s *Server) serve(r request, do func(request) (any, int)) (any, int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case s.errcode != 0:
		return nil, s.errcode
	case s.callsOff > 0:
		s.callsOff--
		return nil, s.calling
	case r.URL.Path == "/oauth2/token":
		return do(r)
	case time.Since(time.UnixMilli(r.int("date")).Add(-s.clock)).Abs() > 5*time.Minute:
		return nil, 80000
	}
	valid, known := s.access[r.FormValue("accessToken")]
	switch {
	case r.FormValue("clientId") != ClientID:
		return nil, 10000
	case !known:
		return nil, 10003
	case !valid:
		return nil, 10004
	}
	if id := r.FormValue("lockId"); id != "" {
		r.lock = s.locks[r.int("lockId")]
		if r.lock == nil || r.lock.removed {
			return nil, -1003
		}
	}
	return do(r)
}

// command wraps what a gateway or lock executes, one at a time. It is called with the mutex.
func (s *Server) command(do func(request) (any, int)) func(request) (any, int) {
	return func(r request) (any, int) {
		g := r.lock.gateway
		switch {
		case g == nil && !r.lock.online:
			return nil, -3036
		case g != nil && !g.online:
			return nil, -3002
		case g != nil && g.refuse > 0:
			g.refuse--
			return nil, -3003
		case g != nil && g.busy:
			return nil, -3003
		}
		if s.held != nil && g != nil {
			held, arrived := s.held, s.arrived
			s.held, g.busy = nil, true
			close(arrived)
			s.mu.Unlock()
			<-held
			s.mu.Lock()
			g.busy = false
		}
		return do(r)
	}
}

func (s *Server) token(r request) (any, int) {
	switch {
	case r.FormValue("clientId") != ClientID:
		return nil, 10000
	case r.FormValue("clientSecret") != ClientSecret:
		return nil, 10001
	}
	s.logins++
	n := strconv.Itoa(s.logins)
	answer := object{"access_token": "fake-access-token-" + n, "expires_in": 7776000}
	old := r.FormValue("refresh_token")
	switch refreshing := r.FormValue("grant_type") != ""; {
	case refreshing && !s.refresh[old]:
		return nil, 10011
	case refreshing && !s.opts.RotateRefresh:
		answer["refresh_token"] = old
	case refreshing:
		delete(s.refresh, old)
		answer["refresh_token"] = "fake-refresh-token-" + n
	case r.FormValue("username") != Username || r.FormValue("password") != PasswordMD5():
		return nil, 10007
	default:
		answer["refresh_token"], answer["uid"] = "fake-refresh-token-"+n, UserID
	}
	s.access["fake-access-token-"+n], s.refresh[answer["refresh_token"].(string)] = true, true
	return answer, 0
}

// paged returns one page of a list.
func paged(r request, all []any) any {
	size, no := int(r.int("pageSize")), int(r.int("pageNo"))
	from := min((no-1)*size, len(all))
	list := all[from:min(from+size, len(all))]
	return object{
		"list": append([]any{}, list...), "pageNo": no, "pageSize": size,
		"pages": (len(all) + size - 1) / size, "total": len(all),
	}
}

func (l *lock) summary() object {
	hasGateway := 0
	if l.gateway != nil {
		hasGateway = 1
	}
	return object{
		"lockId": l.id, "lockName": "YS1003_c18c9c", "lockAlias": l.Name, "lockMac": mac(l.id), "electricQuantity": 55,
		"featureValue": l.Features, "hasGateway": hasGateway, "date": 1528878944000,
	}
}

func (s *Server) listLocks(r request) (any, int) {
	var all []any
	for _, id := range s.order {
		if l := s.locks[id]; !l.removed {
			o := l.summary()
			o["lockData"] = "xxxx"
			all = append(all, o)
		}
	}
	return paged(r, all), 0
}

func (s *Server) detail(r request) (any, int) {
	o := r.lock.summary()
	o["modelNum"], o["noKeyPwd"], o["autoLockTime"] = "SN284", SuperPasscode, cmp.Or(r.lock.autoLock, -1)
	return o, 0
}

func (s *Server) listGateways(r request) (any, int) {
	var all []any
	for _, g := range s.gateways {
		online := 0
		if g.online {
			online = 1
		}
		all = append(all, object{"gatewayId": g.id, "gatewayMac": mac(g.id), "isOnline": online, "lockNum": 1})
	}
	return paged(r, all), 0
}

func (s *Server) gatewaysOfLock(r request) (any, int) {
	list := []any{}
	if g := r.lock.gateway; g != nil {
		list = append(list, object{"gatewayId": g.id, "rssi": -65})
	}
	return object{"list": list}, 0
}

func (s *Server) locksOfGateway(r request) (any, int) {
	list := []any{}
	for _, id := range s.order {
		if l := s.locks[id]; l.gateway != nil && l.gateway.id == r.int("gatewayId") && !l.removed {
			list = append(list, object{"lockId": l.id, "rssi": -65})
		}
	}
	return object{"list": list}, 0
}

func (s *Server) wifi(r request) (any, int) {
	saving := 2
	if r.lock.Kind == SavingWiFi {
		saving = 1
	}
	return object{"networkName": "home", "isOnline": r.lock.online, "powerSavingMode": saving}, 0
}

func (s *Server) move(r request, unlocked bool) (any, int) {
	if s.drop {
		s.drop = false
		return nil, 0
	}
	r.lock.unlocked = unlocked
	one := record{Type: 11, Success: 1}
	if unlocked {
		one.Type = 12
	}
	n := slices.Index(s.order, r.lock.id)
	s.pushes.Go(func() { s.pushRecord(n, one) })
	return nil, 0
}

func (s *Server) listRecords(r request) (any, int) {
	var all []any
	for _, one := range slices.Backward(r.lock.records) {
		if one.At >= r.int("startDate") {
			all = append(all, one)
		}
	}
	return paged(r, all), 0
}

func (s *Server) listCodes(r request) (any, int) {
	l := r.lock
	if r.FormValue("pageNo") == "1" {
		l.fetch()
	}
	shown := l.codes
	if l.lag > 0 {
		shown = l.old
		l.lag--
	}
	var all []any
	for _, c := range shown {
		o := object{
			"keyboardPwdId": c.ID, "lockId": l.id, "keyboardPwd": c.PIN, "keyboardPwdName": c.Name,
			"keyboardPwdType": strconv.Itoa(c.typ), "isCustom": 1, "senderUsername": Username,
		}
		if c.random {
			o["isCustom"] = 0
		}
		if l.Kind == NBIoT || l.Kind == SavingWiFi {
			o["status"] = c.status
		}
		if !c.Start.IsZero() {
			o["startDate"], o["endDate"] = c.Start.UnixMilli(), c.End.UnixMilli()
		}
		all = append(all, o)
	}
	return paged(r, all), 0
}

// fetch executes the commands that a lock fetches later.
func (l *lock) fetch() {
	for _, c := range slices.Clone(l.codes) {
		if c.reads > 1 {
			c.reads--
			continue
		}
		if c.reads == 0 {
			continue
		}
		c.reads = 0
		switch {
		case c.next == nil:
			l.drop(c.ID)
		case c.status == 4:
			*c = *c.next
			l.memory = append(l.memory, c)
		default:
			*c = *c.next
		}
	}
}

func (l *lock) drop(id int64) {
	is := func(c *code) bool { return c.ID == id }
	l.codes, l.memory = slices.DeleteFunc(slices.Clone(l.codes), is), slices.DeleteFunc(slices.Clone(l.memory), is)
}

// remember keeps what the list shows until the lag is over.
func (s *Server) remember(l *lock) {
	if s.opts.Lag == 0 {
		return
	}
	l.old, l.lag = nil, s.opts.Lag
	for _, c := range l.codes {
		l.old = append(l.old, new(*c))
	}
}

// write applies what an addType or changeType demands: at once, or when the lock fetches it.
func (s *Server) write(l *lock, c *code, method int64, to *code, status int) {
	if method == 2 {
		if to == nil {
			l.drop(c.ID)
			return
		}
		*c = *to
		if status == 4 {
			l.memory = append(l.memory, c)
		}
		return
	}
	if s.fail {
		c.status = status + 1
		return
	}
	c.status, c.next, c.reads = status, to, later+1
}

func (s *Server) takesPIN(l *lock, pin string, but *code) bool {
	return !slices.ContainsFunc(l.codes, func(c *code) bool { return c != but && c.PIN == pin })
}

func (s *Server) add(r request) (any, int) {
	l := r.lock
	c := code{
		Code:   Code{PIN: r.FormValue("keyboardPwd"), Name: r.FormValue("keyboardPwdName")},
		typ:    int(cmp.Or(r.int("keyboardPwdType"), 3)),
		status: 1,
	}
	custom := 0
	for _, other := range l.codes {
		if !other.random {
			custom++
		}
	}
	switch {
	case c.typ == 3 && (r.int("startDate") == 0 || r.int("endDate") == 0):
		return nil, -3
	case !s.takesPIN(l, c.PIN, nil):
		return nil, -3007
	case custom >= capacity:
		return nil, -3009
	}
	if c.typ == 3 {
		c.Start, c.End = r.time("startDate"), r.time("endDate")
	}
	c.ID = s.nextID()
	if s.drop {
		s.drop = false
		return object{"keyboardPwdId": c.ID}, 0
	}
	s.remember(l)
	made := new(c)
	l.codes = append(l.codes, made)
	s.write(l, made, r.int("addType"), &c, 4)
	return object{"keyboardPwdId": c.ID}, 0
}

func (s *Server) changeCode(r request) (any, int) {
	l := r.lock
	i := slices.IndexFunc(l.codes, func(c *code) bool { return c.ID == r.int("keyboardPwdId") })
	if i < 0 {
		return nil, 0 // the vendor reports success
	}
	c := l.codes[i]
	to := *c
	to.status = 1
	to.PIN, to.Name = cmp.Or(r.FormValue("newKeyboardPwd"), c.PIN), cmp.Or(r.FormValue("keyboardPwdName"), c.Name)
	switch {
	case s.opts.NeverUsed && !c.used:
		return nil, -3008
	case !s.takesPIN(l, to.PIN, c):
		return nil, -3007
	case s.drop:
		s.drop = false
		return nil, 0
	}
	switch start, end := r.FormValue("startDate"), r.FormValue("endDate"); {
	case start == "" || end == "":
	case start != "0":
		to.typ, to.Start, to.End = 3, r.time("startDate"), r.time("endDate")
	case !s.opts.KeepsFrame:
		to.typ, to.Start, to.End = 2, time.Time{}, time.Time{}
	}
	s.remember(l)
	s.write(l, c, r.int("changeType"), &to, 6)
	return nil, 0
}

func (s *Server) deleteCode(r request) (any, int) {
	l := r.lock
	i := slices.IndexFunc(l.codes, func(c *code) bool { return c.ID == r.int("keyboardPwdId") })
	switch {
	case i < 0:
		return nil, 0 // the vendor reports success
	case s.drop:
		s.drop = false
		return nil, 0
	}
	s.remember(l)
	s.write(l, l.codes[i], r.int("deleteType"), nil, 8)
	return nil, 0
}

// issue computes a random code, which is always the same for the same hours.
func (s *Server) issue(r request) (any, int) {
	l := r.lock
	sum := fnv.New32a()
	for _, part := range []string{"lockId", "keyboardPwdType", "startDate", "endDate"} {
		_, _ = sum.Write([]byte(r.FormValue(part) + " "))
	}
	pin := strconv.Itoa(10000000 + int(sum.Sum32()%80000000))
	for _, c := range l.codes {
		if c.PIN == pin {
			return object{"keyboardPwdId": c.ID, "keyboardPwd": pin}, 0
		}
	}
	c := &code{
		Code: Code{
			ID: s.nextID(), PIN: pin, Name: r.FormValue("keyboardPwdName"),
			Start: r.time("startDate"), End: r.time("endDate"),
		},
		typ:    int(r.int("keyboardPwdType")),
		random: true,
		status: 1,
	}
	s.remember(l)
	l.codes, l.memory = append(l.codes, c), append(l.memory, c)
	return object{"keyboardPwdId": c.ID, "keyboardPwd": pin}, 0
}
