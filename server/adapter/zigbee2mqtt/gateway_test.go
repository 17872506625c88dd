package zigbee2mqtt_test

import (
	"context"
	"errors"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/deviceaccess/terraform-provider-deviceaccess/server/adapter"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/adapter/zigbee2mqtt"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/domain/capability"
	"github.com/deviceaccess/terraform-provider-deviceaccess/test/gateways/zigbee"
	"github.com/deviceaccess/terraform-provider-deviceaccess/test/testenv"
)

func TestCheck(t *testing.T) {
	t.Parallel()
	g := zigbee.Shared(t)
	user, password := g.User(t)
	good := zigbee2mqtt.Config{
		Broker:   g.Broker,
		Topic:    zigbee.Topic,
		Username: user,
		Password: password,
	}
	for name, c := range map[string]struct {
		change func(*zigbee2mqtt.Config)
		class  adapter.Class // empty: no error
		want   string
	}{
		"good":                   {func(*zigbee2mqtt.Config) {}, "", ""},
		"over TLS":               {func(c *zigbee2mqtt.Config) { c.Broker, c.CA = g.TLS, g.CA }, "", ""},
		"over WebSocket":         {func(c *zigbee2mqtt.Config) { c.Broker = g.Web }, "", ""},
		"over WebSocket and TLS": {func(c *zigbee2mqtt.Config) { c.Broker, c.CA = g.WebTLS+"/mqtt", g.CA }, "", ""},
		"over WebSocket, unknown CA": {
			func(c *zigbee2mqtt.Config) { c.Broker = g.WebTLS }, adapter.GatewayDown,
			"as CA",
		},
		"with a certificate": {func(c *zigbee2mqtt.Config) {
			c.Broker, c.CA, c.Cert, c.Key = g.Strict, g.CA,
				g.Cert, g.Key
		}, "", ""},
		"no certificate": {
			func(c *zigbee2mqtt.Config) { c.Broker, c.CA = g.Strict, g.CA },
			adapter.AuthRevoked, "asks for a certificate",
		},
		"WebSocket where none is": {func(c *zigbee2mqtt.Config) {
			c.Broker = "ws://" + strings.TrimPrefix(g.Broker,
				"mqtt://")
		}, adapter.GatewayDown, "cannot be reached"},
		"none where WebSocket is": {func(c *zigbee2mqtt.Config) {
			c.Broker = "mqtt://" + strings.TrimPrefix(g.Web,
				"ws://")
		}, adapter.GatewayDown, "does not answer"},
		"unknown CA": {func(c *zigbee2mqtt.Config) { c.Broker = g.TLS }, adapter.GatewayDown, "as CA"},
		"TLS where none is": {func(c *zigbee2mqtt.Config) {
			c.Broker = strings.Replace(g.Broker, "mqtt",
				"mqtts", 1)
		}, adapter.GatewayDown, "cannot be reached"},
		"none where TLS is": {func(c *zigbee2mqtt.Config) {
			c.Broker = strings.Replace(g.TLS, "mqtts",
				"mqtt", 1)
		}, adapter.GatewayDown, "without TLS"},
		"wrong password": {
			func(c *zigbee2mqtt.Config) { c.Password = "no password" },
			adapter.AuthRevoked, "the user name or the password",
		},
		"no credentials": {
			func(c *zigbee2mqtt.Config) { c.Username, c.Password = "", "" },
			adapter.AuthRevoked, "the user name or the password",
		},
		"another topic": {
			func(c *zigbee2mqtt.Config) { c.Topic = "elsewhere" }, adapter.GatewayDown,
			"base_topic",
		},
		"a stranger": {func(c *zigbee2mqtt.Config) {
			c.Username, c.Password = zigbee.Stranger,
				g.Password(zigbee.Stranger)
		}, adapter.GatewayDown, "may the user read"},
		"no broker": {
			func(c *zigbee2mqtt.Config) { c.Broker = "mqtt://127.0.0.1:1" },
			adapter.GatewayDown, "cannot be reached",
		},
		"no name": {
			func(c *zigbee2mqtt.Config) { c.Broker = "mqtt://broker.invalid" },
			adapter.GatewayDown, "cannot be resolved",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			config := good
			c.change(&config)
			ctx, cancel := context.WithTimeout(t.Context(), testenv.Timeout(testenv.WaitTimeout))
			defer cancel()
			err := zigbee2mqtt.Check(ctx, config)
			switch {
			case c.class == "" && err != nil:
				t.Fatal(err)
			case c.class == "":
				return
			case err == nil || adapter.ClassOf(err) != c.class || !strings.Contains(err.Error(), c.want):
				t.Fatalf("%v; want %s and a message with %q", err, c.class, c.want)
			case strings.Contains(err.Error(), config.Password) && config.Password != "":
				t.Fatal("the error shows the password")
			}
		})
	}
}

// codes returns the lock's PINs by slot.
func (b *bed) codes() map[adapter.CodeRef]string {
	b.Helper()
	codes, err := b.Codes(b.Context(), b.ref, true)
	if err != nil {
		b.Fatal(err)
	}
	out := map[adapter.CodeRef]string{}
	for _, c := range codes.Codes {
		out[c.Ref] = c.PIN
	}
	return out
}

func (b *bed) put(key, pin string) adapter.CodeRef {
	b.Helper()
	result, err := b.PutCode(b.Context(), b.ref, adapter.CodeSpec{Key: key, PIN: pin})
	if err != nil {
		b.Fatal(err)
	}
	return result.Ref
}

// Zigbee2MQTT and the broker are killed one after the other; both lose what they do not store on disk.
func TestKilledGatewayIsReadAgain(t *testing.T) {
	t.Parallel()
	g := zigbee.Start(t, zigbee.Plain)
	b := onGateway(t, g, g.Lease(t, zigbee.Plain))
	ref := b.put("kept", "60216021")
	g.Kill()
	b.until("the account fails", b.fails(adapter.GatewayDown))
	g.Restart(t)
	b.until("the lock is back", func() bool {
		d, err := b.Device(t.Context(), b.ref)
		return err == nil && d.Online
	})
	b.lock.ProgramSilently(t, b.lock.FreeSlot(t), "70317031") // as if it were added while disconnected
	b.until("the code is there, and the stranger's", func() bool {
		codes, err := b.Codes(t.Context(), b.ref, true)
		return err == nil && !codes.Stale && len(codes.Codes) == len(b.lock.State(t).Codes)
	})
	if got := b.codes()[ref]; got != "60216021" {
		t.Error("the code that was put is another one")
	}
	g.KillBroker()
	b.until("the account fails", b.fails(adapter.GatewayDown))
	g.RestartBroker(t)
	b.until("a code can be put again", func() bool {
		_, err := b.PutCode(t.Context(), b.ref, adapter.CodeSpec{Key: "after", PIN: "81428142"})
		return err == nil
	})
	found := 0
	for _, pin := range b.lock.State(t).Codes {
		if pin == "81428142" {
			found++
		}
	}
	if found != 1 {
		t.Errorf("the code is %d times on the lock", found)
	}
}

func TestALockThatLeftAndJoinedAgainIsTheSame(t *testing.T) {
	t.Parallel()
	b := newBed(t, zigbee.Plain)
	ref := b.put("kept", "60216021")
	b.lock.Leave(t)
	b.until("it is gone", func() bool {
		_, err := b.Device(t.Context(), b.ref)
		return err != nil && adapter.ClassOf(err) == adapter.NotFound
	})
	b.lock.Join(t)
	b.until("it is back, with its codes", func() bool {
		codes, err := b.Codes(t.Context(), b.ref, true)
		return err == nil && len(codes.Codes) == len(b.lock.State(t).Codes)
	})
	if b.codes()[ref] != "60216021" {
		t.Error("the code that was put is another one")
	}
}

// The place of a code is announced before the write, so that the code is known after a crash.
func TestPutCode_AnnouncesPlaceBeforeWrite(t *testing.T) {
	t.Parallel()
	b := newBed(t, zigbee.Hidden)
	var told []adapter.CodeRef
	var before int
	spec := adapter.CodeSpec{Key: "new", PIN: "60216021", OnPlace: func(_ context.Context, ref adapter.CodeRef) error {
		told, before = append(told, ref), len(b.lock.State(t).Codes)
		return errors.New("it cannot be noted")
	}}
	if _, err := b.PutCode(t.Context(), b.ref, spec); err == nil || len(b.lock.State(t).Codes) != before {
		t.Errorf("it is written although OnPlace has failed: %v", err)
	}
	spec.OnPlace = func(_ context.Context, ref adapter.CodeRef) error {
		told, before = append(told, ref), len(b.lock.State(t).Codes)
		return nil
	}
	put, err := b.PutCode(t.Context(), b.ref, spec)
	if err != nil || len(told) != 2 || put.Ref != told[1] || len(b.lock.State(t).Codes) != before+1 {
		t.Errorf("it is in %s, announced: %v: %v", put.Ref, told, err)
	}
	change := adapter.CodeSpec{
		Ref: put.Ref, PIN: "71327132",
		OnPlace: func(context.Context, adapter.CodeRef) error { return errors.New("it cannot be noted") },
	}
	if _, err := b.PutCode(t.Context(), b.ref, change); err == nil || len(b.lock.State(t).Codes) != before+1 {
		t.Errorf("the slot is cleared although OnPlace has failed: %v", err)
	}
	change.OnPlace = spec.OnPlace
	if _, err := b.PutCode(t.Context(), b.ref, change); err != nil || len(told) != 3 || told[2] != put.Ref {
		t.Errorf("a change that clears the slot first announced %v: %v", told, err)
	}
}

func TestAnIdleLockIsLeftAlone(t *testing.T) {
	t.Parallel()
	b := newBed(t, zigbee.Plain)
	b.codes()
	before := b.proxy.requests.Load() // not the lock's frames: Zigbee2MQTT reads the bolt periodically
	if before == 0 {
		t.Error("the first reading is not counted")
	}
	for range 3 {
		if _, err := b.Devices(t.Context()); err != nil {
			t.Fatal(err)
		}
		b.codes()
	}
	if requests := b.proxy.requests.Load() - before; requests != 0 {
		t.Errorf("%d requests", requests)
	}
}

func TestHiddenPINsAreNotShown(t *testing.T) {
	t.Parallel()
	for _, profile := range []zigbee.Profile{zigbee.Hidden, zigbee.Masked} {
		b := newBed(t, profile)
		ref := b.put("ours", "60216021")
		d, err := b.Device(t.Context(), b.ref)
		if err != nil || d.Capabilities.PINVisible || d.Capabilities.Convert != capability.ConvertNever {
			t.Errorf(
				"%s: PINs are visible %v, convert %s, %v",
				profile,
				d.Capabilities.PINVisible,
				d.Capabilities.Convert,
				err,
			)
		}
		if pin := b.codes()[ref]; pin != "" {
			t.Errorf("%s: a PIN is shown", profile)
		}
		if _, err := b.PutCode(t.Context(), b.ref, adapter.CodeSpec{Ref: ref, PIN: "71327132"}); err != nil {
			t.Errorf("%s: change the code: %v", profile, err)
		}
		if pin := b.lock.State(t).Codes[1]; pin != "471147" {
			t.Errorf("%s: the stranger's code was changed", profile)
		}
		_, err = b.PutCode(t.Context(), b.ref, adapter.CodeSpec{Key: "again", PIN: "71327132"})
		if e := adapter.AsError(err); e == nil || e.Class != adapter.Duplicate || e.Conflict != ref {
			t.Errorf("%s: our own PIN again: %v", profile, err)
		}
	}
}

func TestACallEndsWithItsContext(t *testing.T) {
	t.Parallel()
	b := newBed(t, zigbee.Plain)
	b.proxy.mute(true)
	defer b.proxy.mute(false)
	for what, call := range map[string]func(context.Context) error{
		"PutCode": func(ctx context.Context) error {
			_, err := b.PutCode(ctx, b.ref, adapter.CodeSpec{Key: "late", PIN: "60216021"})
			return err
		},
		"DeleteCode": func(ctx context.Context) error { _, err := b.DeleteCode(ctx, b.ref, "1"); return err },
		"Unlock":     func(ctx context.Context) error { _, err := b.Unlock(ctx, b.ref); return err },
	} {
		ctx, cancel := context.WithTimeout(t.Context(), testenv.Timeout(time.Second))
		began := time.Now()
		err := call(ctx)
		cancel()
		if adapter.AsError(err) == nil || !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("%s: %v, want the context's error in an *adapter.Error", what, err)
		}
		if took := time.Since(began); took > testenv.Timeout(15*time.Second) {
			t.Errorf("%s continued for %s", what, took)
		}
	}
}

func TestACallEndsWithItsConnection(t *testing.T) {
	t.Parallel()
	b := newBed(t, zigbee.Plain)
	b.proxy.mute(true)
	frames := b.lock.State(t).Frames
	ended := make(chan error, 1)
	go func() {
		_, err := b.PutCode(t.Context(), b.ref, adapter.CodeSpec{Key: "cut", PIN: "60216021"})
		ended <- err
	}()
	b.until("the lock is read", func() bool { return b.lock.State(t).Frames > frames })
	began := time.Now()
	b.proxy.cut()
	if err := <-ended; err == nil || !adapter.ClassOf(err).Retryable() {
		t.Errorf("%v, want an error after which the call is repeated", err)
	}
	if took := time.Since(began); took > testenv.Timeout(15*time.Second) {
		t.Errorf("the call continued for %s", took)
	}
}

// After a rejected PIN, the slot is free for others.
func TestRejectedCodeDoesNotOverwriteAnother(t *testing.T) {
	t.Parallel()
	b := newBed(t, zigbee.Plain)
	first, second := adapter.CodeSpec{Key: "first", PIN: "60216021"}, adapter.CodeSpec{Key: "second", PIN: "60226022"}
	b.lock.Drop(t, 1)
	if _, err := b.PutCode(t.Context(), b.ref, first); err == nil {
		t.Fatal("the lock has accepted it nevertheless")
	}
	for _, spec := range []adapter.CodeSpec{second, first} {
		if _, err := b.PutCode(t.Context(), b.ref, spec); err != nil {
			t.Fatal(err)
		}
	}
	shown := slices.Collect(maps.Values(b.codes()))
	if !slices.Contains(shown, first.PIN) || !slices.Contains(shown, second.PIN) {
		t.Error("one code has overwritten the other")
	}
}
