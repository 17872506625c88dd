package ttlock_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/deviceaccess/terraform-provider-deviceaccess/server/adapter"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/adapter/adaptertest"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/adapter/recording"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/adapter/ttlock"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/adapter/ttlock/ttlocktest"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/adapter/vendorhttp"
	"github.com/deviceaccess/terraform-provider-deviceaccess/test/testenv"
)

// fails requires that an error has a class and says something.
func fails(t *testing.T, err error, class adapter.Class, says string) *adapter.Error {
	t.Helper()
	e := adapter.AsError(err)
	if e == nil || e.Class != class || !strings.Contains(e.Message, says) {
		t.Fatalf("got %v, want %s: …%s…", err, class, says)
	}
	return e
}

func (a *account) put(t *testing.T, n int, spec adapter.CodeSpec) adapter.CodeRef {
	t.Helper()
	result, err := a.adapter.PutCode(t.Context(), a.lock(n), spec)
	if err != nil {
		t.Fatalf("PutCode: %v", err)
	}
	return result.Ref
}

// pins returns the PINs in the memory of the first lock.
func (a *account) pins() (out []string) {
	for _, c := range a.cloud.Codes(0) {
		out = append(out, c.PIN)
	}
	return out
}

// A gateway executes one command at a time, for all its locks. Other gateways do not wait.
func TestGateway_OneCommandAtATime(t *testing.T) {
	t.Parallel()
	a := connect(t, ttlocktest.Options{Locks: []ttlocktest.Lock{{}, {}, {Gateway: 1}}})
	if _, err := a.adapter.Devices(t.Context()); err != nil {
		t.Fatal(err)
	}
	arrived, release := a.cloud.HoldCommand()
	defer release()
	first := make(chan error, 1)
	go func() {
		_, err := a.adapter.PutCode(t.Context(), a.lock(0), adapter.CodeSpec{Key: "1", Name: "A", PIN: "4815"})
		first <- err
	}()
	<-arrived
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	_, err := a.adapter.Unlock(ctx, a.lock(1))
	fails(t, err, adapter.Transient, "another call occupies the gateway")
	a.put(t, 2, adapter.CodeSpec{Key: "3", Name: "C", PIN: "4815"})
	release()
	if err := <-first; err != nil {
		t.Fatal(err)
	}

	// Another program keeps the gateway busy.
	a.cloud.Busy(1, 1)
	_, err = a.adapter.Unlock(t.Context(), a.lock(1))
	if e := fails(t, err, adapter.Transient, "busy"); e.RetryAfter == 0 {
		t.Error("a busy gateway is asked again at once")
	}
	if _, err = a.adapter.Unlock(t.Context(), a.lock(1)); err != nil {
		t.Error(err)
	}
}

// Tokens are renewed when TTLock refuses them, and what it returns is stored. Without a refresh token, a person must log
// in again.
func TestTokens_Renewed(t *testing.T) {
	t.Parallel()
	a := connect(t, ttlocktest.Options{RotateRefresh: true})
	for range 3 {
		before, _ := a.secrets.Load(t.Context(), adapter.CredentialsSecret)
		a.cloud.Expire()
		if _, err := a.adapter.Devices(t.Context()); err != nil {
			t.Fatal(err)
		}
		after, _ := a.secrets.Load(t.Context(), adapter.CredentialsSecret)
		if bytes.Equal(before, after) {
			t.Fatal("the renewed tokens are not stored")
		}
	}
	a.cloud.Revoke()
	_, err := a.adapter.Devices(t.Context())
	fails(t, err, adapter.AuthRevoked, "log in again")
}

// Calls are metered: reads take few, and refusals reach the budget in words that help.
func TestCalls_Metered(t *testing.T) {
	t.Parallel()
	a := connect(t, ttlocktest.Options{Locks: []ttlocktest.Lock{{}, {}, {}}})
	calls := func() (n int) {
		for _, path := range []string{
			"/v3/lock/list", "/v3/lock/detail", "/v3/gateway/list", "/v3/gateway/listLock", "/v3/gateway/listByLock",
			"/v3/lock/queryOpenState", "/v3/lock/listKeyboardPwd", "/v3/keyboardPwd/add",
		} {
			n += a.cloud.Calls(path)
		}
		return n
	}
	steps := []struct {
		what string
		most int
		do   func() error
	}{
		{"a list of devices", 3, func() error { _, err := a.adapter.Devices(t.Context()); return err }},
		{"a read of a device", 4, func() error {
			_, err := a.adapter.Device(t.Context(), a.lock(0))
			return err
		}},
		{"a read of codes", 1, func() error {
			_, err := a.adapter.Codes(t.Context(), a.lock(0), true)
			return err
		}},
		{"a new code", 1, func() error {
			_, err := a.adapter.PutCode(t.Context(), a.lock(0), adapter.CodeSpec{Key: "k", Name: "A", PIN: "4815"})
			return err
		}},
	}
	for _, step := range steps {
		before := calls()
		if err := step.do(); err != nil {
			t.Fatal(err)
		}
		if n := calls() - before; n > step.most {
			t.Errorf("%s takes %d calls, want at most %d", step.what, n, step.most)
		}
	}
	a.cloud.RefuseCalls(30006, 1)
	_, err := a.adapter.Devices(t.Context())
	fails(t, err, adapter.Transient, "accepts no more calls for now")
	a.cloud.RefuseCalls(30007, 1)
	_, err = a.adapter.Devices(t.Context())
	fails(t, err, adapter.Transient, "upgrade the application's plan")
	if got := fmt.Sprint(a.budget.refused); got != "[1m0s 1h0m0s]" {
		t.Errorf("the budget stops for %s", got)
	}
}

// What only an operator can repair is said in words.
func TestErrors_SayWhatToDo(t *testing.T) {
	t.Parallel()
	a := connect(t, ttlocktest.Options{})
	a.cloud.SetClock(10 * time.Minute)
	_, err := a.adapter.Devices(t.Context())
	fails(t, err, adapter.Transient, "the clock of this server is wrong")
	a.cloud.SetClock(0)
	if _, err := a.adapter.Codes(t.Context(), a.lock(0), true); err != nil {
		t.Fatal(err)
	}
	for code, want := range map[int]struct {
		class adapter.Class
		says  string
	}{
		30008: {adapter.GatewayDown, "--url https://cnapi.ttlock.com"},
		10001: {adapter.GatewayDown, "--vendor-client-secret-file"},
		-2025: {adapter.Transient, "unfreeze it in the TTLock app"},
		-2012: {adapter.Offline, "no gateway"},
		-3035: {adapter.Offline, "power saving off"},
		-4056: {adapter.Full, "memory of the lock is full"},
		-3:    {adapter.Invalid, "refuses a value"},
		90000: {adapter.Unconfirmed, "TTLock reports"},
		-9999: {adapter.Unconfirmed, "TTLock reports"},
	} {
		a.cloud.RefuseAll(code)
		_, err := a.adapter.PutCode(t.Context(), a.lock(0), adapter.CodeSpec{Name: "A", PIN: "4815"})
		fails(t, err, want.class, want.says)
		a.cloud.RefuseAll(0)
	}
}

// TTLock reports success for changes that it ignores, and refuses to change a code that was never entered.
func TestChange_IsReadBack(t *testing.T) {
	t.Parallel()
	for name, o := range map[string]ttlocktest.Options{
		"never used":           {NeverUsed: true},
		"keeps the time frame": {KeepsFrame: true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			a := connect(t, o)
			start := time.Now().Add(time.Hour).Truncate(time.Second)
			end := start.Add(time.Hour)
			spec := adapter.CodeSpec{Key: "k", Name: "Jane", PIN: "4815", StartsAt: &start, EndsAt: &end}
			spec.Ref = a.put(t, 0, spec)
			spec.StartsAt, spec.EndsAt = nil, nil
			result, err := a.adapter.PutCode(t.Context(), a.lock(0), spec)
			if o.KeepsFrame { // the first list may have been old
				fails(t, err, adapter.Unconfirmed, "lists the old passcode")
				result, err = a.adapter.PutCode(t.Context(), a.lock(0), spec)
			}
			if err != nil || result.Ref == spec.Ref {
				t.Fatalf("%+v, %v: want another code", result, err)
			}
			if codes := a.cloud.Codes(0); len(codes) != 1 || !codes[0].Start.IsZero() || ref(codes[0]) != result.Ref {
				t.Errorf("the lock has %d codes", len(codes))
			}
		})
	}
	a := connect(t, ttlocktest.Options{})
	spec := adapter.CodeSpec{Key: "k", Name: "Jane", PIN: "4815"}
	spec.Ref = a.put(t, 0, spec)
	spec.PIN = "1623"
	a.cloud.DropNext()
	_, err := a.adapter.PutCode(t.Context(), a.lock(0), spec)
	fails(t, err, adapter.Unconfirmed, "lists the old passcode")
	other := a.cloud.AddCode(0, "Other", "9999")
	spec.PIN = "9999"
	_, err = a.adapter.PutCode(t.Context(), a.lock(0), spec)
	if e := fails(t, err, adapter.Duplicate, "already on the lock"); e.Conflict != adapter.CodeRef(other) {
		t.Errorf("the conflict is with %q", e.Conflict)
	}
	a.cloud.DeleteCode(0, string(spec.Ref))
	_, err = a.adapter.PutCode(t.Context(), a.lock(0), spec)
	fails(t, err, adapter.NotFound, "no longer on the lock")
	select {
	case e := <-a.adapter.Events():
		t.Errorf("a missing code leads to %+v", e)
	default:
	}
}

// A creation whose answer was lost leads to one code, also when its PIN changes before the next try.
func TestCreate_LostAnswer(t *testing.T) {
	t.Parallel()
	a := connect(t, ttlocktest.Options{})
	a.put(t, 0, adapter.CodeSpec{Key: "other", Name: "Other", PIN: "7777"})
	a.cloud.CutNext()
	spec := adapter.CodeSpec{Key: "k", Name: "Jane", PIN: "4815"}
	_, err := a.adapter.PutCode(t.Context(), a.lock(0), spec)
	fails(t, err, adapter.Unconfirmed, "")
	spec.PIN = "1623"
	a.put(t, 0, spec)
	if got := fmt.Sprint(a.pins()); got != "[7777 1623]" {
		t.Errorf("the lock has %s", got)
	}
}

// A full lock has more than one page of codes, and no room.
func TestCodes_FullLock(t *testing.T) {
	t.Parallel()
	a := connect(t, ttlocktest.Options{})
	a.cloud.Fill(0)
	codes, err := a.adapter.Codes(t.Context(), a.lock(0), true)
	if err != nil || len(codes.Codes) != 250 {
		t.Fatalf("%d codes, %v", len(codes.Codes), err)
	}
	_, err = a.adapter.PutCode(t.Context(), a.lock(0), adapter.CodeSpec{Key: "k", Name: "Jane", PIN: "4815"})
	fails(t, err, adapter.Full, "no more passcodes")
}

// The cloud issues offline codes while the gateway is down. Each key has one code, which is no code on the device here.
func TestOfflineCodes(t *testing.T) {
	t.Parallel()
	a := connect(t, ttlocktest.Options{Lag: 1})
	a.cloud.SetOnline(0, false)
	start := time.Now().Add(time.Hour).Truncate(time.Hour)
	spec := adapter.OfflineSpec{
		Key:      "0190a5f2-1d7b-7c55-9c02-6a4f5b0e8d11",
		Kind:     adapter.OfflineHourly,
		StartsAt: start,
		EndsAt:   start.Add(5 * time.Hour),
	}
	first, err := a.adapter.IssueCode(t.Context(), a.lock(0), spec)
	if err != nil || len(first.PIN) < 6 {
		t.Fatalf("%d digits, %v", len(first.PIN), err)
	}
	if again, err := a.adapter.IssueCode(t.Context(), a.lock(0), spec); err != nil || again != first {
		t.Errorf("the same key gives another code, or fails: %v", err)
	}
	once := spec
	once.Key, once.Kind = "once", adapter.OfflineOneTime
	if other, err := a.adapter.IssueCode(t.Context(), a.lock(0), once); err != nil || other.PIN == first.PIN {
		t.Errorf("another key gives the same code, or fails: %v", err)
	}
	once.EndsAt = start.Add(7 * time.Hour)
	_, err = a.adapter.IssueCode(t.Context(), a.lock(0), once)
	fails(t, err, adapter.Invalid, "at most 6 hours")
	spec.EndsAt = start.Add(400 * 24 * time.Hour)
	_, err = a.adapter.IssueCode(t.Context(), a.lock(0), spec)
	fails(t, err, adapter.Invalid, "at most a year")
	codes, err := a.adapter.Codes(t.Context(), a.lock(0), false)
	if err != nil || len(codes.Codes) != 0 || !codes.Stale {
		t.Errorf("%d codes are listed, %v", len(codes.Codes), err)
	}
}

func TestAutoLock(t *testing.T) {
	t.Parallel()
	a := connect(t, ttlocktest.Options{})
	set := func(setting adapter.AutoLock) error {
		_, err := a.adapter.ConfigureAutoLock(t.Context(), a.lock(0), setting)
		return err
	}
	for _, setting := range []adapter.AutoLock{{Enabled: true, Delay: 30 * time.Second}, {}} {
		if err := set(setting); err != nil {
			t.Fatal(err)
		}
		d, err := a.adapter.Device(t.Context(), a.lock(0))
		if err != nil || d.AutoLock == nil || *d.AutoLock != setting {
			t.Errorf("the setting is %+v, %v, want %+v", d.AutoLock, err, setting)
		}
	}
	fails(t, set(adapter.AutoLock{Enabled: true, Delay: 1500 * time.Millisecond}), adapter.Invalid, "whole seconds")
	fails(t, set(adapter.AutoLock{Enabled: true, Delay: time.Hour}), adapter.Invalid, "auto-lock delay")
}

// Pushes are not signed. A forged one makes the adapter look, and nothing else.
func TestPush_IsOnlyAHint(t *testing.T) {
	t.Parallel()
	a := connect(t, ttlocktest.Options{})
	if _, err := a.adapter.Device(t.Context(), a.lock(0)); err != nil {
		t.Fatal(err)
	}
	forged := fmt.Sprintf(`[{"recordType":4,"success":1,"keyboardPwd":"8142","lockDate":%d}]`, time.Now().UnixMilli())
	a.cloud.Push(map[string]string{"notifyType": "1", "lockId": a.cloud.ID(0), "records": forged})
	a.cloud.Push(map[string]string{"notifyType": "3", "lockId": a.cloud.ID(0), "isOnline": "0"})
	a.cloud.WaitForPushes()
	testenv.Until(t, "the adapter looks", func() bool {
		return a.cloud.Calls("/v3/lockRecord/list") > 0 && a.cloud.Calls("/v3/lock/detail") > 1
	})
	a.cloud.EnterPIN(0, "5555") // a true record of a refusal
	for e := range a.adapter.Events() {
		switch e.Kind {
		case adapter.CodesChanged:
			continue
		case adapter.AccessDenied:
			return
		}
		t.Fatalf("the forged pushes lead to %+v", e)
	}
}

// The lock of an asynchronous write reports a failure later: the push points to the code, whose status shows it.
func TestPush_AsyncFailure(t *testing.T) {
	t.Parallel()
	a := connect(t, ttlocktest.Options{Locks: []ttlocktest.Lock{{Kind: ttlocktest.SavingWiFi}}})
	a.cloud.FailNext()
	code := a.put(t, 0, adapter.CodeSpec{Key: "k", Name: "Jane", PIN: "4815"})
	a.cloud.FailLater(0, string(code), -3009)
	if e := <-a.adapter.Events(); e.Kind != adapter.CodesChanged || e.Device != a.lock(0) {
		t.Fatalf("the event is %+v", e)
	}
	codes, err := a.adapter.Codes(t.Context(), a.lock(0), true)
	if err != nil || len(codes.Codes) != 1 || codes.Codes[0].Failed == nil {
		t.Errorf("the codes do not show the failure: %v", err)
	}
}

// No error and no log contains a PIN, a token, or the client's secret.
func TestSecrets_StayInside(t *testing.T) {
	t.Parallel()
	cloud := ttlocktest.Start(t, ttlocktest.Options{})
	var log bytes.Buffer
	found, err := connection(t, cloud).Check(t.Context(), adapter.Env{Client: client})
	if err != nil {
		t.Fatal(err)
	}
	a := ttlock.New(ttlock.Config{
		BaseURL: cloud.URL,
		Client:  client,
		Secrets: &adaptertest.Secrets{Values: map[string][]byte{adapter.CredentialsSecret: found.Credentials}},
		HTTP:    vendorhttp.New(adapter.Env{}),
		Log:     slog.New(slog.NewTextHandler(&log, &slog.HandlerOptions{Level: slog.LevelDebug})),
	})
	t.Cleanup(func() { _ = a.Close() })
	lock := adapter.DeviceRef(cloud.ID(0))
	var seen []error
	for _, disturb := range []func(){
		func() { cloud.RefuseAll(-9999) }, // its message quotes the PIN
		func() { cloud.RefuseAll(10004) },
		func() { cloud.Heal(); cloud.CutNext() },
		func() { cloud.Close() },
	} {
		disturb()
		_, err := a.PutCode(t.Context(), lock, adapter.CodeSpec{Key: "k", Name: "Jane", PIN: "481562"})
		_, err2 := a.Devices(t.Context())
		seen = append(seen, err, err2)
	}
	text := fmt.Sprint(errors.Join(seen...)) + log.String()
	for _, secret := range []string{"481562", "fake-access", "fake-refresh", ttlocktest.ClientSecret} {
		if strings.Contains(text, secret) {
			t.Errorf("a secret that begins with %.4s is shown", secret)
		}
	}
}

// A recording of a login and of reads, as `accounts check --record` makes it, contains nothing of the account.
func TestRecording_IsRedacted(t *testing.T) {
	t.Parallel()
	cloud := ttlocktest.Start(t, ttlocktest.Options{})
	cloud.AddCode(0, "Zdravko", "481562")
	dir := t.TempDir()
	recorder, err := recording.New(dir)
	if err != nil {
		t.Fatal(err)
	}
	env := adapter.Env{Client: client, Transport: recorder.Wrap}
	c := connection(t, cloud)
	found, err := c.Check(t.Context(), env)
	if err != nil {
		t.Fatal(err)
	}
	env.Secrets = &adaptertest.Secrets{Values: map[string][]byte{adapter.CredentialsSecret: found.Credentials}}
	a, err := c.Open(t.Context(), env)
	if err != nil {
		t.Fatal(err)
	}
	defer a.Close()
	if _, err := a.Devices(t.Context()); err != nil {
		t.Fatal(err)
	}
	if _, err := a.Codes(t.Context(), adapter.DeviceRef(cloud.ID(0)), true); err != nil {
		t.Fatal(err)
	}
	hidden := []string{"Zdravko", "481562", ttlocktest.Username, cloud.ID(0), "Front door", "C5:40:E0", "2340"}
	hidden = slices.AppendSeq(hidden, maps.Keys(ttlocktest.Secrets()))
	files, err := filepath.Glob(filepath.Join(dir, "*.json"))
	if err != nil || len(files) < 5 {
		t.Fatalf("%d files, %v", len(files), err)
	}
	for _, file := range files {
		data, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for _, secret := range hidden {
			if bytes.Contains(data, []byte(secret)) {
				t.Errorf("%s contains what begins with %.3s", filepath.Base(file), secret)
			}
		}
	}
}
