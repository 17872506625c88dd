package adaptertest

import (
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/deviceaccess/terraform-provider-deviceaccess/server/adapter"
)

// noiseChecks run in parallel, each on its own bed.
var noiseChecks = []struct {
	name string
	run  func(*trial)
}{
	{"the sensor is equal when listed and when read", noiseListedAsRead},
	{"a threshold is changed and read back", thresholdChanged},
	{"a threshold is created once per key, and deleted", thresholdLives},
	{"a fixed set of thresholds is neither extended nor reduced", thresholdsFixed},
	{"windows that overlap are refused", overlapRefused},
	{"a threshold that is none is refused", thresholdRefused},
	{"an unknown threshold is not found, and its deletion has no effect", thresholdUnknown},
	{"an unknown sensor is not found", sensorUnknown},
	{"an offline sensor refuses, and accepts when back online", sensorOffline},
	{"a dropped change is detected by reading", thresholdDropped},
	{"a change without a response is unconfirmed and repeatable", thresholdCut},
	{"each fault of a change has its class", thresholdFaultsClassified},
	{"a change is reported", thresholdTold},
	{"noise is reported and read", noiseTold},
	{"going offline and online is reported", connectionTold},
	{"closing twice ends the events", closed},
}

// RunNoiseSensor runs the suite for a noise sensor that has a threshold. newBed returns a new bed for each check and
// cleans it up with t.
func RunNoiseSensor(t *testing.T, newBed func(t *testing.T) Bed) {
	for _, check := range noiseChecks {
		t.Run(check.name, func(t *testing.T) {
			t.Parallel()
			c := openTrial(t, newBed(t))
			if c.caps.NoiseSensor == nil || c.caps.Kind() != "noise_detection" || c.caps.OnlineCodes || c.caps.Lock {
				t.Fatalf("the device is not a noise sensor: %+v", c.caps)
			}
			check.run(c)
		})
	}
}

// noiseController returns the adapter as an adapter.NoiseController.
func (c *trial) noiseController() adapter.NoiseController {
	c.Helper()
	n, ok := c.Adapter.(adapter.NoiseController)
	if !ok {
		c.Fatal("the device is a noise sensor, but the adapter does not implement adapter.NoiseController")
	}
	return n
}

// noise reads the state of the sensor.
func (c *trial) noise() adapter.NoiseSensor {
	c.Helper()
	var d adapter.Device
	if err := c.write(func() (err error) { d, err = c.Adapter.Device(c.ctx(), c.Device); return err }); err != nil {
		c.Fatalf("Device: %v", err)
	}
	if d.NoiseSensor == nil {
		c.Fatal("the noise sensor has no state")
	}
	return *d.NoiseSensor
}

// builtin returns the first threshold of a new sensor, with another level.
func (c *trial) builtin(louder float64) adapter.NoiseThreshold {
	c.Helper()
	all := c.noise().Thresholds
	if len(all) == 0 {
		c.Fatal("the sensor has no threshold")
	}
	t := all[0]
	t.Decibels += louder
	return t
}

// night returns a threshold to create, which overlaps no threshold of a new sensor.
func (c *trial) night() adapter.NoiseThreshold {
	c.Helper()
	c.need(!c.caps.NoiseSensor.Fixed, "create a threshold")
	return adapter.NoiseThreshold{
		Key:         "night",
		Name:        "Night",
		StartsDaily: "23:00:00",
		EndsDaily:   "05:00:00",
		Decibels:    48,
	}
}

// tryThreshold writes a threshold, and repeats the write while its error is retryable.
func (c *trial) tryThreshold(t adapter.NoiseThreshold) (ref adapter.ThresholdRef, err error) {
	c.Helper()
	var state adapter.State
	err = c.write(func() (err error) {
		ref, state, err = c.noiseController().PutNoiseThreshold(c.ctx(), c.Device, t)
		return err
	})
	c.typed(err, "")
	if err == nil && (ref == "" || state != adapter.Accepted && state != adapter.Confirmed) {
		c.Fatalf("PutNoiseThreshold: reference %q, state %q", ref, state)
	}
	return ref, err
}

// putThreshold writes a threshold and waits until the device shows it.
func (c *trial) putThreshold(t adapter.NoiseThreshold) adapter.ThresholdRef {
	c.Helper()
	ref, err := c.tryThreshold(t)
	if err != nil {
		c.Fatalf("PutNoiseThreshold: %v", err)
	}
	t.Ref = ref
	c.showsThreshold(t)
	return ref
}

func (c *trial) showsThreshold(want adapter.NoiseThreshold) {
	c.Helper()
	c.until(func() string {
		for _, t := range c.noise().Thresholds {
			if t.Ref == want.Ref && t.StartsDaily == want.StartsDaily && t.EndsDaily == want.EndsDaily &&
				math.Abs(t.Decibels-want.Decibels) <= 0.5 {
				return ""
			}
		}
		return "the device does not show the threshold " + want.Name
	})
}

// lacksThreshold waits until the device does not show a threshold.
func (c *trial) lacksThreshold(ref adapter.ThresholdRef) {
	c.Helper()
	c.until(func() string {
		if slices.ContainsFunc(c.noise().Thresholds, func(t adapter.NoiseThreshold) bool { return t.Ref == ref }) {
			return "the device still shows the threshold"
		}
		return ""
	})
}

func noiseListedAsRead(c *trial) {
	listedAsRead(c)
	n := c.noise()
	refs := map[adapter.ThresholdRef]bool{}
	for _, t := range n.Thresholds {
		if t.Ref == "" || refs[t.Ref] {
			c.Fatalf("the thresholds %+v have no unique references", n.Thresholds)
		}
		refs[t.Ref] = true
	}
	for _, ref := range n.Triggering {
		if !refs[ref] {
			c.Fatalf("the noise exceeds an unknown threshold %q", ref)
		}
	}
	if most := c.caps.NoiseSensor.MaxThresholds; most > 0 && len(n.Thresholds) > most {
		c.Fatalf("%d thresholds, but at most %d", len(n.Thresholds), most)
	}
}

func thresholdChanged(c *trial) {
	c.putThreshold(c.builtin(3))
	c.putThreshold(c.builtin(-3))
}

func thresholdLives(c *trial) {
	night := c.night()
	ref := c.putThreshold(night)
	if again, err := c.tryThreshold(night); err != nil || again != ref {
		c.Fatalf("created again: %q, %v; want %q", again, err, ref)
	}
	before := len(c.noise().Thresholds)
	night.Ref, night.Decibels = ref, 52
	c.putThreshold(night)
	if n := len(c.noise().Thresholds); n != before {
		c.Fatalf("%d thresholds, want %d", n, before)
	}
	if c.caps.NoiseSensor.NRS {
		night.NRS = new(4.0)
		if _, err := c.tryThreshold(night); err != nil {
			c.Fatalf("a noise risk score: %v", err)
		}
	}
	for range 2 { // an absent one is no error
		if _, err := c.noiseController().DeleteNoiseThreshold(c.ctx(), c.Device, ref); err != nil {
			c.Fatalf("DeleteNoiseThreshold: %v", err)
		}
		c.lacksThreshold(ref)
	}
}

func thresholdsFixed(c *trial) {
	c.need(c.caps.NoiseSensor.Fixed, "have a fixed set of thresholds")
	t := c.builtin(0)
	_, err := c.noiseController().DeleteNoiseThreshold(c.ctx(), c.Device, t.Ref)
	c.fails(err, adapter.NotSupported, "DeleteNoiseThreshold")
	t.Ref, t.Key = "", "more"
	_, err = c.tryThreshold(t)
	c.fails(err, adapter.NotSupported, "PutNoiseThreshold")
}

func overlapRefused(c *trial) {
	c.need(c.caps.NoiseSensor.Disjoint, "refuse windows that overlap")
	t := c.builtin(0)
	t.Ref, t.Key = "", "overlap"
	_, err := c.tryThreshold(t)
	c.fails(err, adapter.Invalid, "PutNoiseThreshold")
}

func thresholdRefused(c *trial) {
	before := c.builtin(0)
	t := before
	t.Decibels = -5
	_, err := c.tryThreshold(t)
	c.fails(err, adapter.Invalid, "a negative level")
	if !c.caps.NoiseSensor.NRS {
		t.NRS = new(4.0)
		_, err := c.tryThreshold(t)
		c.fails(err, adapter.Invalid, "a noise risk score")
	}
	c.showsThreshold(before)
	t = c.builtin(0)
	t.Ref, t.Key = "", strings.Repeat("k", 65)
	_, err = c.tryThreshold(t)
	c.fails(err, adapter.Invalid, "a long key")
}

func thresholdUnknown(c *trial) {
	t := c.builtin(1)
	t.Ref = "unknown"
	_, err := c.tryThreshold(t)
	c.fails(err, adapter.NotFound, "PutNoiseThreshold")
	if !c.caps.NoiseSensor.Fixed {
		if _, err := c.noiseController().DeleteNoiseThreshold(c.ctx(), c.Device, "unknown"); err != nil {
			c.Fatalf("DeleteNoiseThreshold: %v", err)
		}
	}
}

func sensorUnknown(c *trial) {
	nowhere := c.Device + "0"
	_, _, err := c.noiseController().PutNoiseThreshold(c.ctx(), nowhere, c.builtin(1))
	c.fails(err, adapter.NotFound, "PutNoiseThreshold")
	_, err = c.noiseController().DeleteNoiseThreshold(c.ctx(), nowhere, "any")
	c.fails(err, adapter.NotFound, "DeleteNoiseThreshold")
}

func sensorOffline(c *trial) {
	c.disconnect()
	t := c.builtin(2)
	_, _, err := c.noiseController().PutNoiseThreshold(c.ctx(), c.Device, t)
	c.fails(err, adapter.Offline, "PutNoiseThreshold of an offline device")
	c.SetOnline(c.T, true)
	c.putThreshold(t)
}

func thresholdDropped(c *trial) {
	c.need(c.DropNext != nil, "drop a write")
	before, t := c.builtin(0), c.builtin(2)
	c.DropNext(c.T)
	if _, _, err := c.noiseController().PutNoiseThreshold(c.ctx(), c.Device, t); err != nil { // the adapter detected it
		c.fails(err, adapter.Unconfirmed, "PutNoiseThreshold")
	}
	c.showsThreshold(before)
	c.putThreshold(t)
}

func thresholdCut(c *trial) {
	c.need(c.CutNext != nil && c.Heal != nil, "lose an answer")
	t := c.builtin(2)
	c.CutNext(c.T)
	_, _, err := c.noiseController().PutNoiseThreshold(c.ctx(), c.Device, t)
	c.fails(err, adapter.Unconfirmed, "PutNoiseThreshold")
	c.Heal(c.T)
	c.showsThreshold(t)
	c.putThreshold(t)
}

func thresholdFaultsClassified(c *trial) {
	c.need(c.FailNext != nil && c.Heal != nil, "make calls fail")
	t := c.builtin(2)
	for _, class := range []adapter.Class{
		adapter.Transient, adapter.Offline, adapter.Invalid, adapter.AuthRevoked,
	} {
		c.FailNext(c.T, class)
		_, _, err := c.noiseController().PutNoiseThreshold(c.ctx(), c.Device, t)
		c.fails(err, class, "PutNoiseThreshold")
		c.Heal(c.T)
	}
	c.putThreshold(t)
}

func thresholdTold(c *trial) {
	if _, err := c.tryThreshold(c.builtin(4)); err != nil {
		c.Fatalf("PutNoiseThreshold: %v", err)
	}
	c.awaitEvent(adapter.StatusChanged)
}

func noiseTold(c *trial) {
	c.need(c.MakeNoise != nil, "make noise")
	c.MakeNoise(c.T, 120)
	c.awaitEvent(adapter.StatusChanged)
	c.until(func() string {
		n := c.noise()
		if n.Decibels == nil || *n.Decibels < 110 {
			return "the noise does not show"
		}
		return ""
	})
}
