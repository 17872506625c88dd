package tedee

import (
	"context"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/deviceaccess/terraform-provider-deviceaccess/server/adapter"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/adapter/vendorhttp"
)

// wirePIN is a PIN in a response, and the body of a write (datastructures/lock-pin-details).
type wirePIN struct {
	ID           int64   `json:"id,omitempty"`
	Alias        string  `json:"alias"`
	PIN          string  `json:"pin"`
	StartDate    *string `json:"startDate"`
	EndDate      *string `json:"endDate"`
	DayStartTime *string `json:"dayStartTime"`
	DayEndTime   *string `json:"dayEndTime"`
	WeekDays     *int    `json:"weekDays"`
}

// code converts a PIN. A PIN that is no number is hidden.
func (p wirePIN) code() adapter.Code {
	c := adapter.Code{
		Ref:      refOf(p.ID),
		PIN:      p.PIN,
		Name:     p.Alias,
		State:    adapter.Confirmed,
		StartsAt: timeOf(p.StartDate),
		EndsAt:   timeOf(p.EndDate),
	}
	if len(p.PIN) > maxPINLength || strings.Trim(p.PIN, "0123456789") != "" {
		c.PIN = ""
	}
	return c
}

func refOf(id int64) adapter.CodeRef { return adapter.CodeRef(strconv.FormatInt(id, 10)) }

// idOf returns the id of a code, or 0.
func idOf(code adapter.CodeRef) int64 {
	id, err := strconv.ParseInt(string(code), 10, 64)
	if err != nil || id < 0 {
		return 0
	}
	return id
}

func timeOf(text *string) *time.Time {
	if text == nil {
		return nil
	}
	at, ok := parseTime(*text)
	if !ok {
		return nil
	}
	return &at
}

// pinList is what the adapter knows of the PINs of one lock. A list has neither PINs nor times, and each takes another
// call, so they are kept as long as the version of the list shows that nothing else changed. The holder of the lock's
// line owns it.
type pinList struct {
	// lock is the id that the list belongs to; 0: nothing is known.
	lock int64
	// version is that of names, and listed is when the vendor sent them.
	version int64
	listed  time.Time
	names   []pinName
	// details are those of the version. Some may be missing.
	details map[int64]wirePIN
	// ours are the details after our own confirmed writes since then; nil without such writes.
	ours   map[int64]wirePIN
	writes int64
	// written are the details of ours that were written. A read confirms them.
	written map[int64]wirePIN
}

type pinName struct {
	ID    int64  `json:"id"`
	Alias string `json:"alias"`
}

// named returns the codes with a name, as far as they are known.
func (l *pinList) named(name string) (codes []adapter.CodeRef) {
	for _, n := range l.names {
		if n.Alias == name {
			codes = append(codes, refOf(n.ID))
		}
	}
	for id, p := range l.ours {
		if p.Alias == name {
			codes = append(codes, refOf(id))
		}
	}
	return codes
}

// fullListInterval is the time after which a list is requested regardless of its version, because the list of another
// keypad may have a lower version.
const fullListInterval = time.Hour

// codeIndex has the lists of the locks by serial number. Its zero value is ready.
type codeIndex struct {
	mu    sync.Mutex
	lists map[adapter.DeviceRef]*pinList
	// named are the codes by name, for events; 0 stands for several.
	named map[adapter.DeviceRef]map[string]int64
}

func (x *codeIndex) of(device adapter.DeviceRef) *pinList {
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.lists == nil {
		x.lists = map[adapter.DeviceRef]*pinList{}
	}
	if x.lists[device] == nil {
		x.lists[device] = &pinList{}
	}
	return x.lists[device]
}

// publish makes the names of a list known to events. The caller must hold the lock's line.
func (x *codeIndex) publish(device adapter.DeviceRef, list *pinList) {
	named := map[string]int64{}
	add := func(name string, id int64) {
		if _, again := named[name]; again {
			id = 0
		}
		named[name] = id
	}
	if list.ours != nil {
		for id, p := range list.ours {
			add(p.Alias, id)
		}
	} else {
		for _, n := range list.names {
			add(n.Alias, n.ID)
		}
	}
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.named == nil {
		x.named = map[adapter.DeviceRef]map[string]int64{}
	}
	x.named[device] = named
}

// byName returns the only code with a name, or "".
func (x *codeIndex) byName(device adapter.DeviceRef, name string) adapter.CodeRef {
	x.mu.Lock()
	defer x.mu.Unlock()
	if id := x.named[device][name]; id != 0 {
		return refOf(id)
	}
	return ""
}

// withCodes calls do while no other call of PINs of the lock is in progress: the vendor refuses a second one.
func (a *Adapter) withCodes(
	ctx context.Context,
	device adapter.DeviceRef,
	do func(known knownLock, list *pinList) error,
) error {
	release, err := a.lines.Hold(ctx, string(device))
	if err != nil {
		return err
	}
	defer release()
	return a.onLock(ctx, device, func(known knownLock) error {
		if !known.caps.OnlineCodes {
			return adapter.Errorf(
				adapter.NotSupported,
				"the lock has no codes that can be programmed; they need a keypad, a bridge, and the rights of an admin",
			)
		}
		list := a.codes.of(device)
		if list.lock != known.id {
			*list = pinList{lock: known.id, version: -1}
		}
		defer a.codes.publish(device, list)
		return do(known, list)
	})
}

// Codes implements adapter.Adapter. The lock answers, so fresh makes no difference.
func (a *Adapter) Codes(ctx context.Context, device adapter.DeviceRef, _ bool) (adapter.Codes, error) {
	out := adapter.Codes{SerialNumber: string(device), Codes: []adapter.Code{}}
	err := a.withCodes(ctx, device, func(known knownLock, list *pinList) error {
		pins, err := a.readPINs(ctx, known, list)
		for _, p := range pins {
			out.Codes = append(out.Codes, p.code())
		}
		return err
	})
	return out, err
}

// readPINs returns all PINs of a lock.
func (a *Adapter) readPINs(ctx context.Context, known knownLock, list *pinList) ([]wirePIN, error) {
	if err := a.readList(ctx, known, list); err != nil {
		return nil, err
	}
	// The first round may find that a write of ours was lost, so that the version counts a write by others.
	for range 2 {
		for _, name := range list.names {
			if err := a.readDetails(ctx, known, list, name.ID); err != nil {
				return nil, err
			}
		}
	}
	pins := make([]wirePIN, 0, len(list.names))
	for _, name := range list.names {
		if p, there := list.details[name.ID]; there { // otherwise it was deleted since
			pins = append(pins, p)
		}
	}
	return pins, nil
}

// readDetails reads the details of a PIN if they are unknown. If they are not those that we wrote, all others become
// unknown.
func (a *Adapter) readDetails(ctx context.Context, known knownLock, list *pinList, id int64) error {
	if _, there := list.details[id]; there {
		return nil
	}
	p, err := a.readPIN(ctx, known, id)
	switch {
	case statusOf(err) == http.StatusNotFound:
		return nil
	case err != nil:
		return err
	}
	if want, ours := list.written[id]; ours && (p.PIN != want.PIN || p.Alias != want.Alias) {
		clear(list.details)
	}
	delete(list.written, id)
	list.details[id] = p
	return nil
}

func (a *Adapter) readPIN(ctx context.Context, known knownLock, id int64) (p wirePIN, err error) {
	err = a.do(ctx, vendorhttp.Call{Path: known.path() + "/pin/" + strconv.FormatInt(id, 10)}, &p)
	if err == nil && p.ID != id {
		err = adapter.Errorf(adapter.Transient, "the response describes another code than requested")
	}
	return p, err
}

// wireList is a list of PINs (datastructures/lock-pin-list).
type wireList struct {
	Version int64                  `json:"listVersion"`
	PINs    *adapter.List[pinName] `json:"pins"`
}

// fetchList requests the list of PINs. changed is false if the version is current.
func (a *Adapter) fetchList(
	ctx context.Context, known knownLock, version int64,
) (got wireList, changed bool, err error) {
	call := vendorhttp.Call{Path: known.path() + "/pin"}
	if version >= 0 {
		call.Query = url.Values{"listVersion": {strconv.FormatInt(version, 10)}}
	}
	err = a.do(ctx, call, &got)
	switch {
	case statusOf(err) == http.StatusNotModified && version >= 0:
		return got, false, nil
	case err != nil:
		return got, false, err
	case got.PINs == nil || len(*got.PINs) > maxCodes:
		return got, false, adapter.Errorf(
			adapter.Transient,
			"the list of codes has no \"pins\", or more than %d",
			maxCodes,
		)
	}
	for _, p := range *got.PINs {
		if p.ID <= 0 {
			return got, false, adapter.Errorf(adapter.Transient, "a code in the list has no id")
		}
	}
	return got, true, nil
}

// readList brings the list up to date, and drops the details that may have changed.
func (a *Adapter) readList(ctx context.Context, known knownLock, list *pinList) error {
	version := list.version
	if a.now().Sub(list.listed) > fullListInterval {
		version = -1
	}
	got, changed, err := a.fetchList(ctx, known, version)
	if err != nil {
		return err
	}
	ours, writes := list.ours, list.writes
	list.ours, list.writes = nil, 0
	if writes > 0 && (!changed || got.Version == list.version) { // our own writes did not arrive
		list.written = nil
	}
	if !changed {
		return nil
	}
	names := *got.PINs
	switch {
	case list.version == got.Version && slices.Equal(list.names, names):
	case writes > 0 && got.Version == list.version+writes && describes(ours, names):
		list.details = ours
		for id := range list.written { // a read confirms it
			delete(list.details, id)
		}
	default:
		list.details, list.written = map[int64]wirePIN{}, nil
	}
	list.version, list.names, list.listed = got.Version, names, a.now()
	return nil
}

// describes reports whether details are those of the names.
func describes(details map[int64]wirePIN, names []pinName) bool {
	for _, n := range names {
		if p, there := details[n.ID]; !there || p.Alias != n.Alias {
			return false
		}
	}
	return len(details) == len(names)
}

// noteWrite records a write that the lock has confirmed; p is nil for a deletion.
func (l *pinList) noteWrite(id int64, p *wirePIN) {
	if l.version < 0 {
		return
	}
	if l.ours == nil {
		l.ours = map[int64]wirePIN{}
		maps.Copy(l.ours, l.details)
	}
	if l.written == nil {
		l.written = map[int64]wirePIN{}
	}
	l.writes++
	delete(l.ours, id)
	delete(l.written, id)
	if p != nil {
		l.ours[id], l.written[id] = *p, *p
	}
}
