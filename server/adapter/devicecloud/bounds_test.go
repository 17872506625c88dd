package devicecloud_test

import (
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/deviceaccess/terraform-provider-deviceaccess/server/adapter"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/adapter/adaptertest"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/adapter/devicecloud"
)

// The server generates PINs from a vendor's numbers, waits for its delays, and stores its texts.
func TestImplausibleCapabilitiesAreIgnored(t *testing.T) {
	t.Parallel()
	kind := strings.Repeat("k", 1<<20)
	lock := `{"locks":[{"lock_id":"l1","name":"Door","auto_lock":{"enabled":true,"delay_seconds":1e300},"capabilities":{"auto_lock":true,"code_lengths":%s,"min_write_gap_ms":9223372036854775807,` +
		`"constraints":[{"constraint_type":"` + kind + `"},{"constraint_type":"a\u0000b"},{"constraint_type":"no_zeros"}]}}]}`
	for lengths, want := range map[string][]int{
		`[1000000000000,6,-1,0,4]`: {4, 6}, `[33,32]`: {32}, `[1000000000000]`: {4, 5, 6, 7, 8}, `[]`: {4, 5, 6, 7, 8},
	} {
		a, _ := vendor(t, guide(says(http.StatusOK, fmt.Sprintf(lock, lengths))))
		devices, err := a.Devices(t.Context())
		if err != nil || len(devices) != 1 {
			t.Fatalf("%s: %d devices, %v", lengths, len(devices), err)
		}
		d := devices[0]
		if !slices.Equal(d.Capabilities.CodeLengths, want) {
			t.Errorf("%s: %v, want %v", lengths, d.Capabilities.CodeLengths, want)
		}
		if d.Capabilities.MinWriteGap < 0 || d.Capabilities.MinWriteGap > 10*time.Second {
			t.Errorf("%s between writes", d.Capabilities.MinWriteGap)
		}
		if d.AutoLock.Delay < 0 || d.AutoLock.Delay > 24*time.Hour {
			t.Errorf("locks after %s", d.AutoLock.Delay)
		}
		if len(d.Capabilities.Constraints) != 1 || d.Capabilities.Constraints[0].Type != "no_zeros" {
			t.Errorf("%d constraints", len(d.Capabilities.Constraints))
		}
	}
}

func TestCodesPerLockAreLimited(t *testing.T) {
	t.Parallel()
	codes := func(n, digits int) string {
		var all []string
		for i := range n {
			all = append(all, fmt.Sprintf(`{"access_code_id":"c%d","code":%q}`, i, strings.Repeat("1", digits)))
		}
		return `{"access_codes":[` + strings.Join(all, ",") + `]}`
	}
	for _, c := range []struct {
		n, digits int
		pin       string
		class     adapter.Class
	}{{2000, 6, "111111", ""}, {5001, 6, "", adapter.Transient}, {1, 33, "", ""}} {
		a, _ := vendor(t, func(w http.ResponseWriter, r *http.Request) {
			if strings.HasSuffix(r.URL.Path, "/access_codes") {
				says(http.StatusOK, codes(c.n, c.digits))(w, r)
				return
			}
			says(http.StatusOK, `{"locks":[{"lock_id":"l1"}],"lock_id":"l1"}`)(w, r)
		})
		got, err := a.Codes(t.Context(), "l1", true)
		if c.class != "" {
			classIs(t, fmt.Sprint(c.n), err, c.class)
			continue
		}
		if err != nil || len(got.Codes) != c.n || got.Codes[0].PIN != c.pin {
			t.Errorf("%d codes of %d digits: %d, %v", c.n, c.digits, len(got.Codes), err)
		}
	}
}

// The capabilities of as many locks as usual are cached; those of further locks are read when needed.
func TestCapabilitiesCacheIsLimited(t *testing.T) {
	t.Parallel()
	odd := `,"capabilities":{"constraints":[` + strings.TrimSuffix(
		strings.Repeat(`{"constraint_type":"`+strings.Repeat("k", 60)+`"},`, 32),
		",",
	) + `]}`
	for name, test := range map[string]struct {
		locks int
		more  string
		kept  bool
	}{"usual": {5000, "", true}, "odd": {2000, odd, false}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var all []string
			for n := range test.locks {
				all = append(all, fmt.Sprintf(`{"lock_id":"l%d"%s}`, n, test.more))
			}
			asked := 0
			a, _ := vendor(t, func(w http.ResponseWriter, r *http.Request) {
				switch {
				case strings.HasSuffix(r.URL.Path, "/access_codes"):
					says(http.StatusOK, `{"access_codes":[]}`)(w, r)
				case strings.HasSuffix(r.URL.Path, "/locks"):
					says(http.StatusOK, `{"locks":[`+strings.Join(all, ",")+`]}`)(w, r)
				default:
					asked++
					says(http.StatusOK, all[test.locks-1])(w, r)
				}
			})
			if _, err := a.Devices(t.Context()); err != nil {
				t.Fatal(err)
			}
			for _, lock := range []string{"l0", fmt.Sprintf("l%d", test.locks-1)} {
				if _, err := a.Codes(t.Context(), adapter.DeviceRef(lock), true); err != nil {
					t.Fatal(err)
				}
			}
			if want := map[bool]int{true: 0, false: 1}[test.kept]; asked != want {
				t.Errorf("%d locks are read", asked)
			}
		})
	}
}

// Waiting for other large responses says nothing about the vendor.
func TestAnswerThatThereIsNoRoomFor(t *testing.T) {
	t.Parallel()
	a := devicecloud.New(devicecloud.Config{BaseURL: "http://vendor.example", HTTP: adaptertest.Saturated()})
	if _, err := a.Devices(t.Context()); !errors.Is(err, adapter.ErrSaturated) || adapter.AsError(err) != nil {
		t.Errorf("list: %v", err)
	}
	if _, err := a.DeleteCode(t.Context(), "l1", "c1"); adapter.ClassOf(err) != adapter.Unconfirmed ||
		errors.Is(err, adapter.ErrSaturated) {
		t.Errorf("a sent write may have taken effect: %v", err)
	}
	if _, err := a.Lock(t.Context(), "l1"); adapter.AsError(err) == nil || adapter.ClassOf(err) != adapter.Transient {
		t.Errorf("the write was not sent: %v", err)
	}
}
