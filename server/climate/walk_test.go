package climate

import (
	"flag"
	"fmt"
	"math"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/deviceaccess/terraform-provider-deviceaccess/server/domain/capability"
)

// The walk drives a thermostat as package reconcile does, with requests of clients, a simulated device, people at it,
// and faults in between. It checks the invariants after each transaction, and that the device comes to rest with what
// is in effect once the faults have stopped.

var walkSeed = flag.Uint64("climate.seed", 0, "the seed of the only walk to run, which prints its steps")

var walks = flag.Uint64("climate.walks", 30, "how many walks to run")

func TestWalk(t *testing.T) {
	t.Parallel()
	if *walkSeed != 0 {
		walkOnce(t, *walkSeed, true)
		return
	}
	for seed := range *walks {
		if walkOnce(t, seed+1, false); t.Failed() {
			t.Fatalf("run it with -climate.seed %d", seed+1)
		}
	}
}

// walk is a bed with a simulated device.
type walk struct {
	*bed

	rand *rand.Rand
	// faults lets the vendor fail and the server crash.
	faults bool
	print  bool
	due    *time.Time

	sim simDevice
	// adjustments, commands, and causes count what may cause events.
	adjustments, commands, causes int
	writes                        int
	attemptsMade                  byte
	// touched is when a request or a person last changed something.
	touched time.Time
}

// simDevice is the simulated thermostat.
type simDevice struct {
	setting Setting
	// queue are accepted writes, oldest first.
	queue []simWrite
	// lagging is what reads show until lagsUntil.
	lagging   Setting
	lagsUntil time.Time

	// hidesUnused means that the device reports the set points of its mode only.
	hidesUnused bool
	// noFan means that it does not report the fan.
	noFan bool
	// confirms means that the answer to a write comes from the device.
	confirms bool
}

type simWrite struct {
	setting Setting
	at      time.Time
}

func walkOnce(tb testing.TB, seed uint64, show bool) {
	w := newWalk(tb, seed)
	w.print = show
	w.pass()
	for range 60 {
		w.step()
		if tb.Failed() {
			return
		}
	}
	w.rest()
}

func newWalk(tb testing.TB, seed uint64) *walk {
	r := rand.New(rand.NewPCG(seed, 42))
	w := &walk{
		bed:    newBed(tb),
		rand:   r,
		faults: true,
	}
	w.zone = w.pick("Europe/Berlin", "America/New_York")
	// Shortly before the clock changes: in Berlin on 2027-03-28, in New York on 2027-11-07.
	w.now = time.Date(2027, 3, 27, 12, 0, 0, 0, time.UTC)
	if r.IntN(2) == 0 {
		w.now = time.Date(2027, 11, 6, 12, 0, 0, 0, time.UTC)
	}
	w.sim = simDevice{
		setting:     heatCool(19, 26).with(fan(capability.FanAuto)),
		hidesUnused: r.IntN(2) == 0,
		noFan:       r.IntN(4) == 0,
		confirms:    r.IntN(2) == 0,
	}
	for i, key := range []string{"home", "away", "sleep"} {
		w.do(func(t *Thermostat) error {
			return t.CreatePreset(PresetFields{Key: key, Setting: heatCool(16+2*float64(i), 22+2*float64(i))})
		})
	}
	return w
}

func (w *walk) pick(zones ...string) *time.Location {
	zone, err := time.LoadLocation(zones[w.rand.IntN(len(zones))])
	if err != nil {
		w.Fatal(err)
	}
	return zone
}

func (w *walk) note(format string, args ...any) {
	if w.print {
		w.Logf(w.now.In(w.zone).Format("Mon 15:04:05 ")+format, args...)
	}
}

// step takes a random step.
func (w *walk) step() {
	steps := []struct {
		weight int
		take   func()
	}{
		{6, w.request},
		{4, w.adjust},
		{12, w.pass},
		{4, func() { w.elapse(time.Duration(w.rand.IntN(20)) * time.Second) }},
		{4, func() { w.elapse(time.Duration(w.rand.IntN(200)) * time.Minute) }},
		{10, w.waitUntilDue},
		{2, func() { w.online = !w.online; w.note("online: %v", w.online) }},
	}
	total := 0
	for _, s := range steps {
		total += s.weight
	}
	n := w.rand.IntN(total)
	for _, s := range steps {
		if n -= s.weight; n < 0 {
			s.take()
			return
		}
	}
}

func (w *walk) elapse(d time.Duration) {
	w.now = w.now.Add(d)
	w.deliver()
}

func (w *walk) waitUntilDue() {
	if w.due != nil && w.due.After(w.now) {
		w.elapse(w.due.Sub(w.now))
	}
	w.pass()
}

// randomSetting returns a setting for every taste.
func (w *walk) randomSetting() Setting {
	h := 16 + w.rand.Float64()*4
	switch w.rand.IntN(6) {
	case 0:
		return Setting{Mode: capability.Off}
	case 1:
		return heat(h)
	case 2:
		return cool(h + 8)
	case 3:
		return fan([]capability.FanMode{capability.FanAuto, capability.FanOn}[w.rand.IntN(2)])
	}
	return heatCool(h, h+5)
}

func (w *walk) nextAttempt() Attempt {
	w.attemptsMade++
	return w.attempt(w.attemptsMade)
}

// request is a random request.
func (w *walk) request() {
	key := []string{"home", "away", "sleep"}[w.rand.IntN(3)]
	w.touched = w.now
	kind := w.rand.IntN(8)
	err := w.try(func(t *Thermostat) error {
		switch kind {
		case 0:
			w.commands++
			return t.Command(w.nextAttempt(), w.randomSetting())
		case 1:
			w.causes++
			return t.Activate(w.nextAttempt(), key)
		case 2:
			return t.SetFallback(key)
		case 3, 4:
			return w.requestSchedule(t, key)
		case 5:
			if n := len(t.Schedules); n > 0 {
				t.RemoveSchedule(t.Schedules[w.rand.IntN(n)].ID)
			}
			return nil
		case 6:
			return w.requestProgram(t)
		}
		return t.UpdatePreset(PresetFields{Key: key, Setting: heatCool(15+w.rand.Float64()*4, 25)})
	})
	w.note("request %d %s: %v", kind, key, err)
	if err == nil && w.rand.IntN(3) > 0 {
		w.pass()
	}
}

func (w *walk) requestSchedule(t *Thermostat, key string) error {
	s := Schedule{
		ID:              uuid.UUID{14: 1, 15: byte(w.rand.IntN(4))},
		Preset:          key,
		StartsAt:        w.now.Add(time.Duration(w.rand.IntN(240)-60) * time.Minute),
		OverrideAllowed: w.rand.IntN(2) == 0,
	}
	s.EndsAt = s.StartsAt.Add(time.Duration(w.rand.IntN(300)+1) * time.Minute)
	if w.rand.IntN(2) == 0 {
		s.MaxOverride = new(w.rand.IntN(60) + 1)
	}
	return t.PutSchedule(&s)
}

func (w *walk) requestProgram(t *Thermostat) error {
	keys := []string{"home", "away", "sleep"}
	periods := []Period{{"00:00:00", keys[w.rand.IntN(3)]}}
	for i := range w.rand.IntN(4) {
		at := fmt.Sprintf("%02d:%02d:00", i*6+w.rand.IntN(6), 5*w.rand.IntN(11)+5)
		periods = append(periods, Period{at, keys[w.rand.IntN(3)]})
	}
	if n := len(t.State.DailyPrograms); n > 1 && w.rand.IntN(2) == 0 {
		return t.UpdateDailyProgram(w.nextAttempt(), t.State.DailyPrograms[w.rand.IntN(n)].ID, "changed", periods)
	}
	id := uuid.UUID{14: 2, 15: byte(len(t.State.DailyPrograms))}
	if err := t.CreateDailyProgram(DailyProgram{ID: id, Name: "day", Periods: periods}); err != nil {
		return err
	}
	var days [7]uuid.UUID
	for i := range days {
		if w.rand.IntN(4) > 0 {
			days[i] = t.State.DailyPrograms[w.rand.IntN(len(t.State.DailyPrograms))].ID
		}
	}
	return t.SetWeekly(w.nextAttempt(), days)
}

// adjust changes the setting at the device.
func (w *walk) adjust() {
	w.adjustments++
	w.touched = w.now
	w.sim.apply(w.randomSetting())
	w.note("a person sets %s", w.sim.setting.text())
}

// apply changes the setting, with set points rounded to the steps of the device.
func (d *simDevice) apply(s Setting) {
	round := func(c *float64) *float64 {
		if c == nil {
			return nil
		}
		return new(math.Round(*c*2) / 2)
	}
	s.Heat, s.Cool = round(s.Heat), round(s.Cool)
	d.setting = s.onDevice(d.setting)
}

// deliver applies the accepted writes that have arrived, in their order.
func (w *walk) deliver() {
	for len(w.sim.queue) > 0 && !w.sim.queue[0].at.After(w.now) {
		w.note("%s arrives", w.sim.queue[0].setting.text())
		w.sim.apply(w.sim.queue[0].setting)
		w.sim.queue = w.sim.queue[1:]
	}
}

// reported returns the part of a setting that reads show.
func (d *simDevice) reported(s Setting) Setting {
	if d.hidesUnused {
		s = s.relevant()
	}
	if d.noFan {
		s.Fan = ""
	}
	return s
}

// read returns what a read shows.
func (w *walk) read() Observed {
	s := w.sim.setting
	if w.now.Before(w.sim.lagsUntil) {
		s = w.sim.lagging
	}
	return Observed{Setting: w.sim.reported(s), Temperature: new(18 + 4*w.rand.Float64())}
}

// send writes to the device. It returns nil if the server crashes before the answer.
func (w *walk) send(s Setting) *Outcome {
	w.writes++
	n := 100
	if w.faults {
		n = w.rand.IntN(20)
	}
	w.note("send %s, fault %d", s.text(), n)
	switch n {
	case 0:
		return &Outcome{Failure: &Failure{Class: Transient, Message: "later"}}
	case 1:
		return &Outcome{Failure: &Failure{Class: Invalid, Message: "no"}}
	case 2:
		return &Outcome{Failure: &Failure{
			Class:      Transient,
			Message:    "much later",
			RetryAfter: 3 * time.Minute,
		}}
	case 3: // lost
		return &Outcome{State: Unknown}
	case 4:
		return nil
	case 5: // never applied
		return &Outcome{State: Accepted}
	}
	if w.sim.confirms {
		if w.rand.IntN(2) == 0 && len(w.sim.queue) == 0 {
			w.sim.lagging, w.sim.lagsUntil = w.sim.setting, w.now.Add(5*time.Second)
		}
		w.elapse(0)
		for _, q := range w.sim.queue {
			w.sim.apply(q.setting)
		}
		w.sim.queue = nil
		w.sim.apply(s)
	} else {
		at := w.now.Add(time.Duration(w.rand.IntN(40)) * time.Second)
		if n := len(w.sim.queue); n > 0 && w.sim.queue[n-1].at.After(at) {
			at = w.sim.queue[n-1].at
		}
		w.sim.queue = append(w.sim.queue, simWrite{s, at})
		w.deliver()
	}
	switch {
	case n == 6:
		return nil
	case n == 7:
		return &Outcome{State: Unknown}
	case w.sim.confirms:
		return &Outcome{State: Confirmed}
	}
	return &Outcome{State: Accepted}
}

// pass reads the device and sends what it needs.
func (w *walk) pass() {
	record := func(*Thermostat) {}
	for range 4 {
		var p Plan
		o := w.read()
		w.do(func(t *Thermostat) error {
			record(t)
			if w.online || w.rand.IntN(2) == 0 {
				w.note("read %s", o.Setting.text())
				t.Observe(o)
			}
			p = t.Plan()
			w.checkOverride(t)
			if p.Send != nil {
				t.Start(*p.Send)
			}
			return nil
		})
		if w.due = p.Due; p.Send == nil {
			break
		}
		if !w.online {
			w.Error("something is sent to a device that is offline")
		}
		outcome := w.send(*p.Send)
		if outcome == nil {
			w.note("the server crashes")
			break
		}
		record = func(t *Thermostat) { t.Record(*p.Send, *outcome) }
	}
	w.checkEvents()
	if w.print && len(w.log) > 0 {
		w.note("  %s; due %v", strings.Join(w.log, "; "), w.due)
	}
	w.log = nil
}

// checkOverride checks that no override stays longer than its schedule allows.
func (w *walk) checkOverride(t *Thermostat) {
	s := t.ActiveSchedule()
	if s == nil || t.State.Override == nil {
		return
	}
	allowed := s.MaxOverride == nil || w.now.Sub(*t.State.Override) < time.Duration(*s.MaxOverride)*time.Minute
	if !s.OverrideAllowed || !allowed {
		w.Errorf("an override since %s stays", t.State.Override)
	}
}

// checkEvents checks that no event lacks a cause.
func (w *walk) checkEvents() {
	var external, seam int
	exceeded := false
	last := math.NaN()
	for _, e := range w.events {
		switch {
		case e.Fields["method"] == "external":
			external++
		case e.Fields["method"] == "seam":
			seam++
		case e.Type == "thermostat.temperature_changed":
			at := e.Fields["temperature_celsius"].(float64)
			if math.Abs(at-last) < 0.98 {
				w.Errorf("the temperature changes from %v to %v", last, at)
			}
			last = at
		case strings.HasSuffix(e.Type, "_exceeded"):
			if exceeded == !strings.Contains(e.Type, "no_longer") {
				w.Errorf("%s is repeated", e.Type)
			}
			exceeded = !exceeded
		}
	}
	if external > w.adjustments || seam > w.commands {
		w.Errorf("%d changes at the device for %d adjustments, %d commands confirmed of %d",
			external, w.adjustments, seam, w.commands)
	}
}

// rest ends all faults and checks that the device comes to rest, today and after the next transitions.
func (w *walk) rest() {
	w.note("rest")
	w.faults, w.online = false, true
	w.calm(time.Hour)
	w.checkRest()
	for range 12 {
		writes, activations := w.writes, w.activations()
		from := w.now
		w.calm(time.Duration(w.rand.IntN(360)+61) * time.Minute)
		w.checkRest()
		changes := w.transitions(from, w.now, 100)
		if n := w.writes - writes; n > changes+1 { // an override may end
			w.Errorf("%d writes for %d transitions", n, changes)
		}
		if n := w.activations() - activations; n > changes {
			w.Errorf("%d activations for %d transitions", n, changes)
		}
	}
	for id, end := range w.attempts {
		if end == "pending" {
			w.Errorf("attempt %d never ends", id[15])
		}
	}
}

func (w *walk) activations() (n int) {
	for _, e := range w.events {
		if e.Type == "thermostat.climate_preset_activated" {
			n++
		}
	}
	return n
}

// calm runs passes for a time, and until two minutes after a transition.
func (w *walk) calm(d time.Duration) {
	w.settle(d)
	for w.transitions(w.now.Add(-2*time.Minute), w.now, 1) > 0 || len(w.sim.queue) > 0 {
		w.settle(2 * time.Minute)
	}
}

// settle runs passes for a time.
func (w *walk) settle(d time.Duration) {
	end := w.now.Add(d)
	w.pass()
	for range 300 {
		next := end
		if w.due != nil && w.due.Before(end) {
			next = *w.due
		}
		for _, q := range w.sim.queue {
			if q.at.Before(next) {
				next = q.at
			}
		}
		w.elapse(max(next.Sub(w.now), time.Millisecond))
		w.pass()
		if !w.now.Before(end) {
			return
		}
	}
	w.Errorf("%s take more than 300 passes", d)
}

// selected returns the preset that time selects at a moment, and what selects it.
func (w *walk) selected(t *Thermostat, at time.Time) string {
	var running *Schedule
	for _, s := range w.schedules {
		if !s.StartsAt.After(at) && s.EndsAt.After(at) && (running == nil || s.StartsAt.After(running.StartsAt)) {
			running = &s
		}
	}
	if running != nil {
		return running.Preset + " by " + running.ID.String()
	}
	if t.State.Weekly == nil {
		return ""
	}
	local := at.In(w.zone)
	i := t.dailyProgram(t.State.Weekly.Days[local.Weekday()])
	if i < 0 {
		return ""
	}
	clock := clockOf(local)
	if offsetOf(local) != offsetOf(local.Add(-2*time.Hour)) {
		// The clock was set back: what has started does not start again.
		for earlier := local; earlier.After(local.Add(-2 * time.Hour)); earlier = earlier.Add(-time.Minute) {
			if earlier.Day() == local.Day() {
				clock = max(clock, clockOf(earlier))
			}
		}
	}
	period := Period{}
	for _, p := range t.State.DailyPrograms[i].Periods {
		if p.StartsAtTime <= clock {
			period = p
		}
	}
	return period.Preset + " " + local.Weekday().String() + period.StartsAtTime
}

func clockOf(t time.Time) string {
	return fmt.Sprintf("%02d:%02d:%02d", t.Hour(), t.Minute(), t.Second())
}

func offsetOf(t time.Time) int {
	_, offset := t.Zone()
	return offset
}

// transitions counts the changes of what time selects between two moments, up to a number.
func (w *walk) transitions(from, to time.Time, most int) (n int) {
	t := w.load()
	was := w.selected(t, from)
	for at := from; !at.After(to) && n < most; at = at.Add(time.Minute) {
		if now := w.selected(t, at); now != was {
			was = now
			n++
		}
	}
	return n
}

// checkRest checks that the device has what is in effect.
func (w *walk) checkRest() {
	t := w.load()
	d := t.State.Desired
	now := w.selected(t, w.now)
	key, _, _ := strings.Cut(now, " ")
	if key != t.State.Baseline.Preset {
		w.Errorf("the baseline is %q, want %q", t.State.Baseline.Preset, now)
	}
	if len(t.State.Waiting) > 0 {
		w.Errorf("%d attempts wait at rest", len(t.State.Waiting))
	}
	if d == nil || d.Refusal != "" || t.State.Override != nil {
		return
	}
	has := w.sim.reported(w.sim.setting)
	if !t.shows(d.Setting, has) {
		w.Errorf("the device has %s, want %s by %s", has.text(), d.Setting.text(), d.Source)
	}
	// Whatever was touched, the last transition counts.
	if now != "" && w.transitions(w.touched, w.now, 1) > 0 && !t.shows(t.preset(key).Setting, has) {
		w.Errorf("the device has %s, want preset %s", has.text(), now)
	}
}
