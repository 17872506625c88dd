package devicecloud_test

import (
	"cmp"
	"context"
	"os"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/deviceaccess/terraform-provider-deviceaccess/server/adapter"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/adapter/adaptertest"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/domain/capability"
)

func reclassify(from, to adapter.Class) *twisted {
	return &twisted{err: func(e *adapter.Error) {
		if e.Class == from {
			e.Class = to
		}
	}}
}

func without(kind adapter.EventKind) *twisted {
	return &twisted{events: passing(func(e adapter.Event) bool { return e.Kind != kind }, false)}
}

type defect struct {
	check   string
	profile string // default: august
	make    func(bed *adaptertest.Bed) *twisted
}

// defects has an entry for every check of the suite: the check, and an adapter that the check must reject.
var defects = []defect{
	{"the device is equal when listed and when read", "", func(*adaptertest.Bed) *twisted {
		return &twisted{devices: func(d []adapter.Device) { d[0].Model = "another" }}
	}},
	{"capabilities agree with each other", "smartthings", func(*adaptertest.Bed) *twisted {
		return &twisted{caps: func(c *capability.Set) { c.Convert = capability.ConvertAdopt }}
	}},
	{"every code length is accepted", "", func(*adaptertest.Bed) *twisted {
		return &twisted{caps: func(c *capability.Set) { c.CodeLengths = []int{4, 12} }}
	}},
	{"other code lengths are refused", "", func(*adaptertest.Bed) *twisted {
		return &twisted{caps: func(c *capability.Set) { c.CodeLengths = []int{4} }}
	}},
	{"a PIN that breaks a constraint is refused", "", func(*adaptertest.Bed) *twisted {
		return &twisted{caps: func(c *capability.Set) { c.Constraints = []capability.Constraint{{Type: "no_zeros"}} }}
	}},
	{"a name of the wrong length is refused", "", func(*adaptertest.Bed) *twisted {
		return &twisted{caps: func(c *capability.Set) {
			c.Constraints = []capability.Constraint{{Type: "name_length", MaxLength: 20}}
		}}
	}},
	{"a time frame is applied or not supported", "", func(*adaptertest.Bed) *twisted { return timeless(true) }},
	{"half a time frame is refused", "", func(*adaptertest.Bed) *twisted { return timeless(true) }},
	{"a start in the past is refused where it must be in the future", "kwikset", func(*adaptertest.Bed) *twisted {
		return timeless(true)
	}},
	{"a put code is read back and on the device", "", func(*adaptertest.Bed) *twisted {
		return &twisted{codes: func(c *adapter.Codes) {
			for i := range c.Codes {
				c.Codes[i].PIN = ""
			}
		}}
	}},
	{"one key creates one code", "smartthings", func(*adaptertest.Bed) *twisted {
		return &twisted{put: func(ctx context.Context, next putFunc, spec adapter.CodeSpec) (adapter.PutResult, error) {
			spec.Key = ""
			return next(ctx, spec)
		}}
	}},
	{"a key can be reused after its code is deleted", "", func(*adaptertest.Bed) *twisted {
		var kept sync.Map
		return &twisted{put: func(ctx context.Context, next putFunc, spec adapter.CodeSpec) (adapter.PutResult, error) {
			if result, ok := kept.Load(spec.Key); ok {
				return result.(adapter.PutResult), nil
			}
			result, err := next(ctx, spec)
			if err == nil {
				kept.Store(spec.Key, result)
			}
			return result, err
		}}
	}},
	{"a code is overwritten by its ref", "", func(*adaptertest.Bed) *twisted {
		return &twisted{put: func(ctx context.Context, next putFunc, spec adapter.CodeSpec) (adapter.PutResult, error) {
			if spec.Ref != "" {
				return adapter.PutResult{Ref: spec.Ref, State: adapter.Confirmed}, nil
			}
			return next(ctx, spec)
		}}
	}},
	{"an overwritten code keeps its time frame", "nuki", func(*adaptertest.Bed) *twisted { return timeless(false) }},
	{"overwriting an absent code is not found", "", func(*adaptertest.Bed) *twisted {
		return &twisted{put: func(ctx context.Context, next putFunc, spec adapter.CodeSpec) (adapter.PutResult, error) {
			result, err := next(ctx, spec)
			if spec.Ref != "" && err != nil {
				spec.Ref = ""
				return next(ctx, spec)
			}
			return result, err
		}}
	}},
	{"a deleted code is off the device", "", func(*adaptertest.Bed) *twisted {
		var hidden sync.Map
		return &twisted{
			del: func(_ context.Context, _ delFunc, code adapter.CodeRef) (adapter.State, error) {
				hidden.Store(code, true)
				return adapter.Confirmed, nil
			},
			codes: hiding(&hidden),
		}
	}},
	{"deleting an absent code succeeds", "", func(*adaptertest.Bed) *twisted {
		var gone sync.Map
		return &twisted{del: func(ctx context.Context, next delFunc, code adapter.CodeRef) (adapter.State, error) {
			if _, again := gone.LoadOrStore(code, true); again {
				return "", adapter.Errorf(adapter.NotFound, "no such code")
			}
			return next(ctx, code)
		}}
	}},
	{"a foreign code can be deleted", "", func(*adaptertest.Bed) *twisted {
		return &twisted{del: func(context.Context, delFunc, adapter.CodeRef) (adapter.State, error) {
			return adapter.Confirmed, nil
		}}
	}},
	{"a duplicate PIN is refused and names the code that has it", "", func(*adaptertest.Bed) *twisted {
		return &twisted{err: func(e *adapter.Error) { e.Conflict = "another" }}
	}},
	{"a PIN that was added at the keypad is a duplicate", "", func(*adaptertest.Bed) *twisted {
		return reclassify(adapter.Duplicate, adapter.Invalid)
	}},
	{"a full device refuses", "", func(*adaptertest.Bed) *twisted { return reclassify(adapter.Full, adapter.Invalid) }},
	{"an unknown device is not found", "", func(*adaptertest.Bed) *twisted {
		return reclassify(adapter.NotFound, adapter.Transient)
	}},
	{"a removed device is not found", "", func(*adaptertest.Bed) *twisted {
		return reclassify(adapter.NotFound, adapter.Offline)
	}},
	{"an offline device refuses, and accepts when back online", "", func(*adaptertest.Bed) *twisted {
		return &twisted{codes: func(c *adapter.Codes) { c.Stale = false }}
	}},
	{"a revoked account is reported", "", func(*adaptertest.Bed) *twisted {
		return reclassify(adapter.AuthRevoked, adapter.Transient)
	}},
	{"a dropped write is detected by reading", "", func(*adaptertest.Bed) *twisted {
		var put sync.Map
		return &twisted{
			put: func(ctx context.Context, next putFunc, spec adapter.CodeSpec) (adapter.PutResult, error) {
				result, err := next(ctx, spec)
				put.Store(result.Ref, true)
				return result, err
			},
			codes: func(c *adapter.Codes) {
				put.Range(func(ref, _ any) bool {
					c.Codes = append(c.Codes, adapter.Code{Ref: ref.(adapter.CodeRef), State: adapter.Confirmed})
					return true
				})
			},
		}
	}},
	{"a dropped deletion is detected by reading", "", func(*adaptertest.Bed) *twisted {
		var hidden sync.Map
		return &twisted{
			del: func(ctx context.Context, next delFunc, code adapter.CodeRef) (adapter.State, error) {
				hidden.Store(code, true)
				return next(ctx, code)
			},
			codes: hiding(&hidden),
		}
	}},
	{"a write that failed on the device is detected by reading", "", func(*adaptertest.Bed) *twisted {
		return &twisted{codes: func(c *adapter.Codes) {
			for i := range c.Codes {
				c.Codes[i].Failed = nil
			}
		}}
	}},
	{"a write without a response is unconfirmed and repeatable", "", func(*adaptertest.Bed) *twisted {
		return reclassify(adapter.Unconfirmed, adapter.Transient)
	}},
	{"each fault has its class", "", func(*adaptertest.Bed) *twisted {
		return reclassify(adapter.Offline, adapter.Transient)
	}},
	{"a closed connection is reestablished", "", func(bed *adaptertest.Bed) *twisted {
		dead := &atomic.Bool{}
		cut := bed.Disconnect
		bed.Disconnect = func(t testing.TB) { cut(t); dead.Store(true) }
		return &twisted{dead: dead}
	}},
	{"a call ends with its context", "", func(*adaptertest.Bed) *twisted {
		return &twisted{deaf: 2100 * time.Millisecond}
	}},
	{"a stopped gateway is reported", "", func(*adaptertest.Bed) *twisted {
		return reclassify(adapter.GatewayDown, adapter.Transient)
	}},
	{
		"a code added at the keypad is reported and listed", "",
		func(*adaptertest.Bed) *twisted { return without(adapter.CodesChanged) },
	},
	{"a code changed at the keypad is reported and listed", "", func(*adaptertest.Bed) *twisted {
		var first atomic.Bool
		return &twisted{events: passing(func(adapter.Event) bool { return !first.Swap(true) }, false)}
	}},
	{"a code deleted at the keypad is reported", "", func(*adaptertest.Bed) *twisted {
		return &twisted{codes: remembering()}
	}},
	{
		"changes while offline are read afterwards", "",
		func(*adaptertest.Bed) *twisted { return without(adapter.DeviceOnline) },
	},
	{
		"going offline and online is reported", "",
		func(*adaptertest.Bed) *twisted { return without(adapter.DeviceOffline) },
	},
	{"removing a device is reported", "", func(*adaptertest.Bed) *twisted { return without(adapter.DeviceListed) }},
	{"closing twice ends the events", "", func(*adaptertest.Bed) *twisted {
		return &twisted{events: passing(func(adapter.Event) bool { return true }, true)}
	}},
}

// timeless drops time frames: always, or only when a code is changed.
func timeless(always bool) *twisted {
	return &twisted{put: func(ctx context.Context, next putFunc, spec adapter.CodeSpec) (adapter.PutResult, error) {
		if always || spec.Ref != "" {
			spec.StartsAt, spec.EndsAt = nil, nil
		}
		return next(ctx, spec)
	}}
}

func hiding(hidden *sync.Map) func(*adapter.Codes) {
	return func(c *adapter.Codes) {
		c.Codes = slices.DeleteFunc(c.Codes, func(code adapter.Code) bool {
			_, ok := hidden.Load(code.Ref)
			return ok
		})
	}
}

// remembering returns every code that was ever read.
func remembering() func(*adapter.Codes) {
	seen := map[adapter.CodeRef]adapter.Code{}
	return func(c *adapter.Codes) {
		for _, code := range c.Codes {
			seen[code.Ref] = code
		}
		c.Codes = c.Codes[:0]
		for _, code := range seen {
			c.Codes = append(c.Codes, code)
		}
	}
}

// defectVariable is the environment variable that makes TestDefective run with the defect of the named check.
const defectVariable = "ADAPTERTEST_DEFECT"

// TestDefective is a helper: TestSuiteNotices runs it in a separate process, and expects it to fail.
func TestDefective(t *testing.T) {
	check := os.Getenv(defectVariable)
	if check == "" {
		t.Skip("run by TestSuiteNotices")
	}
	d := defects[slices.IndexFunc(defects, func(d defect) bool { return d.check == check })]
	adaptertest.Run(t, func(t *testing.T) adaptertest.Bed {
		bed := newCloud(t, cmp.Or(d.profile, "august")).bed()
		bed.Timeout = 300 * time.Millisecond
		w := d.make(&bed)
		w.Adapter = bed.Adapter
		bed.Adapter = w
		return bed
	})
}

// TestSuiteNotices verifies that every check can fail, and fails for its defect.
func TestSuiteNotices(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("starts one process for each check")
	}
	for _, d := range defects {
		t.Run(d.check, func(t *testing.T) {
			t.Parallel()
			name := strings.ReplaceAll(d.check, " ", "_")
			cmd := exec.CommandContext(t.Context(), os.Args[0], "-test.run", "^TestDefective$/^"+name+"$", "-test.v")
			cmd.Env = append(os.Environ(), defectVariable+"="+d.check)
			out, _ := cmd.CombinedOutput() // the output contains the exit status as well
			if !strings.Contains(string(out), "--- FAIL: TestDefective/"+name) {
				t.Errorf("the suite did not detect the defect:\n%s", out)
			}
		})
	}
}
