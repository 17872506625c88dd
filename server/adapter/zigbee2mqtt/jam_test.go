package zigbee2mqtt

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/deviceaccess/terraform-provider-deviceaccess/server/adapter"
)

// States of a bolt as published by Zigbee2MQTT.
const (
	isLocked   = `{"state":"LOCK","lock_state":"locked","battery":77}`
	isUnlocked = `{"state":"UNLOCK","lock_state":"unlocked","battery":77}`
	isStuck    = `{"state":"UNLOCK","lock_state":"not_fully_locked","battery":77}`
	otherStuck = `{"state":"UNLOCK","lock_state":"not_fully_locked","battery":76}`
)

// A published command is not repeated, whatever the bolt does, because it may have been executed. A jam is reported
// with the direction of the command.
func TestJammedCommandIsNotRepeated(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name     string
		retained string   // retained state at the broker; empty: none
		before   string   // last state seen by the adapter
		lock     bool     // otherwise unlock
		says     []string // messages, one per second
		state    adapter.State
		jammed   bool // a jam is reported
	}{
		{
			name:   "it unlocks",
			before: isLocked,
			says:   []string{isUnlocked},
			state:  adapter.Confirmed,
		},
		{
			name:   "it jams on its way to unlock",
			before: isLocked,
			says:   []string{isStuck},
			state:  adapter.Accepted,
			jammed: true,
		},
		{
			name:   "it jams on its way to lock",
			before: isUnlocked,
			lock:   true,
			says:   []string{isStuck},
			state:  adapter.Accepted,
			jammed: true,
		},
		{
			name:   "it was jammed, and still is",
			before: isStuck,
			says:   []string{isStuck},
			state:  adapter.Accepted,
			jammed: true,
		},
		{
			name:   "it was jammed, and still is on its way to lock",
			before: isStuck,
			lock:   true,
			says:   []string{isStuck},
			state:  adapter.Accepted,
			jammed: true,
		},
		{name: "it was jammed, and says nothing", before: isStuck},
		{name: "it was jammed, by what is retained, and says nothing", retained: isStuck, lock: true},
		{name: "it was jammed, and speaks of something else", before: isStuck, says: []string{otherStuck}},
		{
			name:   "it was jammed, and moves",
			before: isStuck,
			lock:   true,
			says:   []string{isStuck, isLocked},
			state:  adapter.Confirmed,
		},
		{
			name:   "it was jammed, and opens",
			before: isStuck,
			says:   []string{isStuck, isUnlocked},
			state:  adapter.Confirmed,
		},
		{
			name:   "it is half way for a while",
			before: isLocked,
			says:   []string{isStuck, isUnlocked},
			state:  adapter.Confirmed,
		},
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
				if state != c.state || c.state == "" && adapter.ClassOf(err) != adapter.Unconfirmed ||
					c.state != "" && err != nil || sent != 1 {
					t.Errorf("%q, %v, after %d commands", state, err, sent)
				}
				var jams []bool
				for range len(a.hints.Events()) {
					if e := <-a.hints.Events(); e.Kind == adapter.Jammed {
						jams = append(jams, e.Operation.Locked)
					}
				}
				if told := len(jams) == 1 && jams[0] == c.lock; told != c.jammed || len(jams) > 1 {
					t.Errorf("jams: %v", jams)
				}
			})
		})
	}
}

// A lock may report a jam later. It is not attributed to an old command.
func TestLateJamBelongsToCommand(t *testing.T) {
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
						t.Errorf("after %s, the jam is reported as one while locking: %v", after, e.Operation.Locked)
					}
				}
			}
			if n != 1 {
				t.Errorf("after %s, it is reported %d times", after, n)
			}
		})
	}
}

// When the gateway stops during a command, the outcome of the command is unknown.
func TestCommandIsUnconfirmedWhenGatewayStops(t *testing.T) {
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
			t.Errorf("not sent: %v", err)
		}
	})
}
