package zigbee2mqtt

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/deviceaccess/terraform-provider-deviceaccess/server/adapter"
)

// What a lock says of its bolt, as Zigbee2MQTT publishes it.
const (
	isLocked   = `{"state":"LOCK","lock_state":"locked","battery":77}`
	isUnlocked = `{"state":"UNLOCK","lock_state":"unlocked","battery":77}`
	isStuck    = `{"state":"UNLOCK","lock_state":"not_fully_locked","battery":77}`
	otherStuck = `{"state":"UNLOCK","lock_state":"not_fully_locked","battery":76}`
)

// A command that was published is not sent again, whatever the bolt does then: it may have got through. That the bolt is jammed is told
// with where the command was to move it.
func TestCommandThatMeetsAJamIsNotOneThatWasNotSent(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name     string
		retained string   // how the lock was last seen, by the broker; empty: it does not say
		before   string   // and by us
		lock     bool     // otherwise unlock
		says     []string // after a second each
		state    adapter.State
		jammed   bool // is told
	}{
		{name: "it unlocks", before: isLocked, says: []string{isUnlocked}, state: adapter.Confirmed},
		{name: "it jams on its way to unlock", before: isLocked, says: []string{isStuck}, state: adapter.Accepted, jammed: true},
		{name: "it jams on its way to lock", before: isUnlocked, lock: true, says: []string{isStuck}, state: adapter.Accepted, jammed: true},
		{name: "it was jammed, and still is", before: isStuck, says: []string{isStuck}, state: adapter.Accepted, jammed: true},
		{name: "it was jammed, and still is on its way to lock", before: isStuck, lock: true, says: []string{isStuck}, state: adapter.Accepted, jammed: true},
		{name: "it was jammed, and says nothing", before: isStuck},
		{name: "it was jammed, by what is retained, and says nothing", retained: isStuck, lock: true},
		{name: "it was jammed, and speaks of something else", before: isStuck, says: []string{otherStuck}},
		{name: "it was jammed, and moves", before: isStuck, lock: true, says: []string{isStuck, isLocked}, state: adapter.Confirmed},
		{name: "it was jammed, and opens", before: isStuck, says: []string{isStuck, isUnlocked}, state: adapter.Confirmed},
		{name: "it is half way for a while", before: isLocked, says: []string{isStuck, isUnlocked}, state: adapter.Confirmed},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				a := told(t, lockListed("0xa", "front door", "V"))
				l := a.locks["0xa"]
				if c.retained != "" {
					a.receive("z/front door", []byte(c.retained), true)
				}
				if c.before != "" {
					a.publish("front door", c.before)
				}
				for range len(a.hints.Events()) {
					<-a.hints.Events()
				}
				sent := 0
				a.connected(t, func(b *fakeBroker, topic string, _ []byte) {
					if topic != "z/0xa/set" {
						return
					}
					sent++
					for _, text := range c.says {
						time.Sleep(time.Second)
						a.publish("front door", text)
					}
				})
				move := a.Unlock
				if c.lock {
					move = a.Lock
				}
				state, err := move(t.Context(), l.ref)
				if state != c.state || c.state == "" && adapter.ClassOf(err) != adapter.Unconfirmed || c.state != "" && err != nil || sent != 1 {
					t.Errorf("%q, %v, after %d commands", state, err, sent)
				}
				var jams []bool
				for range len(a.hints.Events()) {
					if e := <-a.hints.Events(); e.Kind == adapter.Jammed {
						jams = append(jams, e.Operation.Locked)
					}
				}
				if told := len(jams) == 1 && jams[0] == c.lock; told != c.jammed || len(jams) > 1 {
					t.Errorf("told are jams %v", jams)
				}
			})
		})
	}
}

// A lock may say only later that its bolt is jammed: of a command from long ago it is none any more.
func TestJamThatIsToldLateIsThatOfTheCommand(t *testing.T) {
	t.Parallel()
	for after, locked := range map[time.Duration]bool{10 * time.Second: false, time.Hour: true} {
		synctest.Test(t, func(t *testing.T) {
			a := told(t, lockListed("0xa", "front door", "V"))
			a.publish("front door", isLocked)
			a.connected(t, func(*fakeBroker, string, []byte) {})
			if _, err := a.Unlock(t.Context(), "0xa"); adapter.ClassOf(err) != adapter.Unconfirmed {
				t.Errorf("Unlock: %v", err)
			}
			time.Sleep(after)
			a.publish("front door", isStuck)
			a.publish("front door", isStuck)
			n := 0
			for range len(a.hints.Events()) {
				if e := <-a.hints.Events(); e.Kind == adapter.Jammed {
					if n++; e.Operation.Locked != locked {
						t.Errorf("%s later the jam is told as one of locking: %v", after, e.Operation.Locked)
					}
				}
			}
			if n != 1 {
				t.Errorf("%s later it is told %d times", after, n)
			}
		})
	}
}

// What ends while a command is on its way leaves open what has become of that.
func TestCommandDuringWhichTheGatewayStopsIsDoubted(t *testing.T) {
	t.Parallel()
	for name, stop := range map[string]func(a *Adapter){
		"it stops": func(a *Adapter) { a.receive("z/bridge/state", []byte("offline"), false) },
		"it has failed": func(a *Adapter) {
			a.receive("z/bridge/logging", []byte(`{"level":"error","message":"z2m: Publish 'set' 'state' to 'front door' failed: 'Error: of some kind'"}`), false)
		},
	} {
		synctest.Test(t, func(t *testing.T) {
			a := told(t, lockListed("0xa", "front door", "V"))
			a.connected(t, func(_ *fakeBroker, topic string, _ []byte) {
				if strings.HasSuffix(topic, "/set") {
					stop(a)
				}
			})
			if _, err := a.Unlock(t.Context(), "0xa"); adapter.ClassOf(err) != adapter.Unconfirmed {
				t.Errorf("%s: %v", name, err)
			}
		})
	}
	synctest.Test(t, func(t *testing.T) {
		a := told(t, lockListed("0xa", "front door", "V")) // without a connection
		if _, err := a.Unlock(t.Context(), "0xa"); adapter.ClassOf(err) != adapter.GatewayDown {
			t.Errorf("before it is sent: %v", err)
		}
	})
}
