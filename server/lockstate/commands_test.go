package lockstate

import (
	"strings"
	"testing"
	"time"

	"github.com/deviceaccess/terraform-provider-deviceaccess/server/domain"
)

// start records that the nth pending attempt was sent.
func (b *bed) start(n int) { b.attempts[n].StartedAt = new(b.now()) }

func TestCommands_RunInOrder(t *testing.T) {
	t.Parallel()
	b := newBed(t, "yale")
	b.command(domain.LockDoor)
	b.command(domain.UnlockDoor)
	b.command(domain.ConfigureAutoLock)
	b.attempts[2].AutoLock = &AutoLock{Enabled: true, Delay: 5}
	p := b.look()
	if p.Command == nil || p.Command.Attempt != b.attempts[0].ID || !p.Command.Lock || p.Command.Started {
		t.Fatalf("command %+v", p.Command)
	}
	if p.AutoLock == nil || p.AutoLock.Attempt != b.attempts[2].ID || p.AutoLock.Delay != 5 || p.AutoLock.Started {
		t.Fatalf("setting %+v", p.AutoLock)
	}
	if p.Due == nil || p.Deadline == nil || !p.Due.Equal(*p.Deadline) {
		t.Errorf("due at %v, deadline %v", p.Due, p.Deadline)
	}
	b.start(0)
	b.start(2)
	if p = b.look(); !p.Command.Started || !p.AutoLock.Started || p.Due.After(b.now().Add(time.Second)) {
		t.Errorf("command %+v, setting %+v, due at %v", p.Command, p.AutoLock, p.Due)
	}
	b.step(func(l *Lock) { l.End(b.attempts[0].ID, Succeeded, "", "") })
	if p = b.look(); p.Command == nil || p.Command.Lock {
		t.Errorf("next command %+v", p.Command)
	}
}

// A jam ends the command that moved the bolt there, and no other.
func TestCommands_Jam(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		kind            string
		started, locked bool
		fails           bool
	}{
		"of this command":       {domain.LockDoor, true, true, true},
		"of unlocking":          {domain.UnlockDoor, true, false, true},
		"on the other way":      {domain.LockDoor, true, false, false},
		"before it was sent":    {domain.LockDoor, false, true, false},
		"during another action": {domain.ConfigureAutoLock, true, false, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := newBed(t, "yale")
			a := b.command(c.kind)
			if c.started {
				b.start(0)
			}
			b.step(func(l *Lock) { l.FailJammed(c.locked) })
			if got := b.attempt(a); (got.Status == Failed) != c.fails || c.fails && got.ErrorType != "lock_jammed" {
				t.Errorf("attempt %s %s", got.Status, got.ErrorType)
			}
		})
	}
}

// The message of an expired attempt says what to look at.
func TestAttempts_Expire(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		kind    string
		offline bool
		says    string
	}{
		"a setting":              {domain.ConfigureAutoLock, false, "auto_lock_enabled"},
		"a command":              {domain.UnlockDoor, false, "locked property"},
		"a code":                 {domain.CreateAccessCode, false, "keeps retrying"},
		"a code, offline":        {domain.CreateAccessCode, true, "offline all the time"},
		"a conversion":           {domain.ConvertAccessCode, false, "Convert it again"},
		"a conversion, offline":  {domain.ConvertAccessCode, true, "when the device is back"},
		"a removal of unmanaged": {domain.DeleteUnmanagedAccessCode, false, "keeps retrying"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := newBed(t, "yale")
			b.read(found("k1", "2580"))
			u := b.unmanaged()[0]
			var r result
			switch c.kind {
			case domain.CreateAccessCode:
				_, r = b.create("4711")
			case domain.ConvertAccessCode:
				r = b.convert(u, nil)
			case domain.DeleteUnmanagedAccessCode:
				r = b.deleteUnmanaged(u)
			default:
				r = b.command(c.kind)
			}
			b.device.Online = !c.offline
			b.pass(b.timeouts.Attempt - time.Second)
			b.look()
			if got := b.attempt(r); got.Status != Pending {
				t.Fatalf("a second before: attempt %s", got.Status)
			}
			b.pass(time.Second)
			b.look()
			if got := b.attempt(r); got.Status != Failed || got.ErrorType != "action_attempt_expired" ||
				!strings.Contains(got.Message, c.says) {
				t.Errorf("attempt %s %s: %s", got.Status, got.ErrorType, got.Message)
			}
			failed := "access_code.unmanaged.failed_to_convert_to_managed"
			if n := len(b.told(failed)); (n == 1) != (c.kind == domain.ConvertAccessCode) {
				t.Errorf("%d events about a conversion", n)
			}
		})
	}
}
