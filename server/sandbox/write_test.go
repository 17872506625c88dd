package sandbox_test

import (
	"fmt"
	"net/http"
	"sync/atomic"
	"testing"
	"time"

	"github.com/deviceaccess/terraform-provider-deviceaccess/server/sandbox"
	"github.com/deviceaccess/terraform-provider-deviceaccess/test/testenv"
)

// slow keeps writes pending until the end of the test.
var slow = sandbox.Faults{LatencyMS: &sandbox.Range{Min: 60_000, Max: 60_000}}

func TestAFailedCreationIsListedUntilDeletedOrRepeated(t *testing.T) {
	t.Parallel()
	b := open(t, sandbox.Options{Seed: 7}, "august")
	e := b.subscribe(t)
	failing := sandbox.Faults{FailureRate: map[string]float64{"failed": 1}}
	body := object{"name": "Guest", "code": "4821", "custom_id": "k1"}
	fail := func() string {
		b.faults(t, failing)
		id, _ := b.ok(t, http.MethodPost, b.codesPath(), body)["access_code_id"].(string)
		b.faults(t, sandbox.Faults{})
		if told := e.next(t, "access_code.created"); told["status"] != "failed" || told["access_code_id"] != id {
			t.Errorf("event %v", told)
		}
		if c := with(b.list(t), "access_code_id", id); c["status"] != "failed" || c["error_code"] != "DEVICE_ERROR" {
			t.Errorf("listed as %v", c)
		}
		return id
	}
	id := fail()
	if answer := b.ok(t, http.MethodDelete, "/access_codes/"+id, nil); answer["status"] != "deleted" {
		t.Errorf("deleted as %v", answer)
	}
	if with(b.list(t), "access_code_id", id) != nil {
		t.Error("the deleted failure is listed")
	}
	id = fail()
	if next := b.put(t, body); next == id || with(b.list(t), "access_code_id", id) != nil {
		t.Errorf("%s follows %s, the list is %v", next, id, b.list(t))
	}
}

func TestFailedChangeKeepsTheCode(t *testing.T) {
	t.Parallel()
	b := open(t, sandbox.Options{Seed: 7}, "august")
	id := b.put(t, object{"name": "Guest", "code": "4821"})
	b.faults(t, sandbox.Faults{FailureRate: map[string]float64{"failed": 1}})
	b.ok(t, http.MethodPatch, "/access_codes/"+id, object{"code": "4822"})
	b.faults(t, sandbox.Faults{})
	var c object
	testenv.Until(t, "the change failed", func() bool {
		c = with(b.list(t), "access_code_id", id)
		return c["status"] == "active" && c["error_code"] != nil
	})
	if c["code"] != "4821" || c["error_code"] != "DEVICE_ERROR" {
		t.Errorf("listed as %v", c)
	}
	b.ok(t, http.MethodPatch, "/access_codes/"+id, object{"code": "4823"})
	testenv.Until(t, "the next change succeeds", func() bool {
		c = with(b.list(t), "access_code_id", id)
		return c["code"] == "4823" && c["error_code"] == nil
	})
}

func TestWritesAreCheckedOnArrival(t *testing.T) {
	t.Parallel()
	delayed := sandbox.Faults{LatencyMS: &sandbox.Range{Min: 3000, Max: 3000}}
	full := delayed
	full.SlotsTaken = 1000
	for _, c := range []struct {
		name   string
		happen func(t *testing.T, b *box, other string) // during the write
		write  func(t *testing.T, b *box, other string)
		want   string
	}{
		{
			"the lock filled up", func(t *testing.T, b *box, _ string) { b.faults(t, full) },
			func(t *testing.T, b *box, _ string) {
				b.ok(t, http.MethodPost, b.codesPath(), object{"name": "Guest", "code": "4822"})
			}, "DEVICE_FULL",
		},
		{"the PIN was taken", func(t *testing.T, b *box, _ string) {
			b.ok(t, http.MethodPost, b.controlPath("keypad/codes"), object{"name": "Neighbour", "code": "4822"})
		}, func(t *testing.T, b *box, _ string) {
			b.ok(t, http.MethodPost, b.codesPath(), object{"name": "Guest", "code": "4822"})
		}, "PIN_CONFLICT"},
		{"the code was deleted", func(t *testing.T, b *box, other string) {
			b.ok(t, http.MethodDelete, b.controlPath("keypad/codes/"+other), nil)
		}, func(t *testing.T, b *box, other string) {
			b.ok(t, http.MethodPatch, "/access_codes/"+other, object{"name": "Guest"})
		}, "ACCESS_CODE_NOT_FOUND"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			b := open(t, sandbox.Options{Seed: 7}, "august")
			other := b.put(t, object{"name": "Other", "code": "4821"})
			e := b.subscribe(t, "access_code.created", "access_code.updated")
			b.faults(t, delayed)
			c.write(t, b, other)
			c.happen(t, b, other)
			for deadline := time.Now().Add(testenv.Timeout(testenv.WaitTimeout)); ; {
				var told object
				select {
				case told = <-e.got:
				case <-time.After(time.Until(deadline)):
					t.Fatal("no event")
				}
				if told["status"] == "failed" {
					if told["error_code"] != c.want {
						t.Errorf("event %v, want %s", told, c.want)
					}
					return
				}
			}
		})
	}
}

func TestACodeThatIsBeingDeletedStillCounts(t *testing.T) {
	t.Parallel()
	b := open(t, sandbox.Options{Seed: 7}, "august")
	id := b.put(t, object{"name": "Guest", "code": "4821", "custom_id": "k1"})
	b.faults(t, slow)
	for range 2 {
		if answer := b.ok(t, http.MethodDelete, "/access_codes/"+id, nil); answer["status"] != "pending" {
			t.Errorf("deleted as %v", answer)
		}
	}
	if c := with(b.list(t), "access_code_id", id); c["status"] != "deleting" {
		t.Errorf("listed as %v", c)
	}
	b.refuses(t, "PIN_CONFLICT", http.MethodPost, b.codesPath(), object{"name": "Other", "code": "4821"})
	b.refuses(t, "DEVICE_BUSY", http.MethodPost, b.codesPath(),
		object{"name": "Guest", "code": "4821", "custom_id": "k1"})
	b.refuses(t, "ACCESS_CODE_NOT_FOUND", http.MethodPatch, "/access_codes/"+id, object{"name": "Other"})
}

func TestACodeIsPendingWhileItIsChanged(t *testing.T) {
	t.Parallel()
	b := open(t, sandbox.Options{Seed: 7}, "august")
	id := b.put(t, object{"name": "Guest", "code": "4821"})
	b.faults(t, slow)
	b.ok(t, http.MethodPatch, "/access_codes/"+id, object{"code": "4822"})
	if c := with(b.list(t), "access_code_id", id); c["status"] != "pending" || c["code"] != "4821" {
		t.Errorf("listed as %v", c)
	}
	b.refuses(t, "PIN_CONFLICT", http.MethodPost, b.codesPath(), object{"name": "Other", "code": "4822"})
}

func TestNoWriteOvertakesAnother(t *testing.T) {
	t.Parallel()
	b := open(t, sandbox.Options{Seed: 7}, "august")
	b.faults(t, sandbox.Faults{LatencyMS: &sandbox.Range{Min: 0, Max: 50}})
	e := b.subscribe(t)
	id := b.put(t, object{"name": "Guest 0", "code": "4821"})
	e.next(t, "access_code.created")
	const last = 20
	for n := range last {
		b.ok(t, http.MethodPatch, "/access_codes/"+id, object{"name": fmt.Sprintf("Guest %d", n+1)})
	}
	for n := range last {
		told := e.next(t, "access_code.updated")["access_code"].(map[string]any)
		if want := fmt.Sprintf("Guest %d", n+1); told["name"] != want {
			t.Fatalf("event of %v, want %s", told["name"], want)
		}
	}
}

func TestActiveCodeCanBeChanged(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 5, 1, 12, 0, 0, 0, time.UTC)
	var later atomic.Int64 // offset of the clock
	clock := func() time.Time { return now.Add(time.Duration(later.Load())) }
	b := open(t, sandbox.Options{Seed: 7, Clock: clock}, "kwikset")
	id := b.put(t, object{
		"name": "Guest", "code": "4821", "starts_at": now.Add(time.Hour),
		"ends_at": now.Add(3 * time.Hour),
	})
	path := "/access_codes/" + id

	later.Store(int64(2 * time.Hour))
	b.ok(t, http.MethodPatch, path, object{"ends_at": now.Add(5 * time.Hour)})
	b.refuses(t, "INVALID_TIME_FRAME", http.MethodPatch, path, object{"starts_at": now.Add(90 * time.Minute)})
	later.Store(int64(24 * time.Hour))
	b.ok(t, http.MethodPatch, path, object{"name": "Late guest"})
	b.refuses(t, "INVALID_TIME_FRAME", http.MethodPatch, path, object{"ends_at": now.Add(6 * time.Hour)})
}
