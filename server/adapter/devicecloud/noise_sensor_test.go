package devicecloud_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
)

// Given a broken or malicious vendor, a noise sensor has only plausible thresholds.
func TestNoiseSensor_AbsurdThresholds(t *testing.T) {
	t.Parallel()
	threshold := func(id, more string) string {
		return `{"threshold_id":"` + id + `","name":"x","starts_daily_at":"22:00:00","ends_daily_at":"07:00:00","decibels":50` +
			more + `}`
	}
	many := make([]string, 300)
	for i := range many {
		many[i] = threshold(fmt.Sprint("m", i), "")
	}
	for name, c := range map[string]struct {
		state string
		want  int // thresholds; -1: no state
	}{
		"plausible":        {`{"decibels":40,"thresholds":[` + threshold("a", "") + `],"triggering":["a","a","b"]}`, 1},
		"none":             {`{"thresholds":[]}`, 0},
		"missing":          {`{"decibels":40}`, -1},
		"too many":         {`{"thresholds":[` + strings.Join(many, ",") + `]}`, 100},
		"no identifier":    {`{"thresholds":[` + threshold("", "") + `]}`, 0},
		"dots":             {`{"thresholds":[` + threshold("..", "") + `]}`, 0},
		"a level":          {`{"thresholds":[` + threshold("a", `,"decibels":1e300`) + `]}`, 0},
		"a score":          {`{"thresholds":[` + threshold("a", `,"nrs":1e300`) + `]}`, 1},
		"a time":           {`{"thresholds":[` + threshold("a", `,"ends_daily_at":"25:00:00"`) + `]}`, 0},
		"a long zone":      {`{"thresholds":[` + threshold("a", `,"time_zone":"`+strings.Repeat("z", 200)+`"`) + `]}`, 0},
		"a long name":      {`{"thresholds":[` + threshold("a", `,"name":"`+strings.Repeat("n", 5000)+`"`) + `]}`, 1},
		"an absurd level":  {`{"decibels":1e12,"nrs":-1e12,"thresholds":[]}`, 0},
		"a long reference": {`{"thresholds":[` + threshold(strings.Repeat("r", 2000), "") + `]}`, 0},
	} {
		a, _ := vendor(t, says(http.StatusOK, `{"lock_id":"l1","name":"Sensor","noise_sensor":`+c.state+
			`,"capabilities":{"noise_sensor":{"max_thresholds":99999}}}`))
		d, err := a.Device(t.Context(), "l1")
		if err != nil || d.Capabilities.NoiseSensor == nil || d.Capabilities.NoiseSensor.MaxThresholds > 100 {
			t.Errorf("%s: %+v, %v", name, d.Capabilities, err)
			continue
		}
		switch n := d.NoiseSensor; {
		case c.want < 0:
			if n != nil {
				t.Errorf("%s: %+v", name, n)
			}
		case n == nil || len(n.Thresholds) != c.want || len(n.Triggering) > len(n.Thresholds):
			t.Errorf("%s: %+v", name, n)
		case n.Decibels != nil && *n.Decibels > 1000 || n.NRS != nil && *n.NRS < -1000:
			t.Errorf("%s: levels %v, %v", name, n.Decibels, n.NRS)
		case len(n.Thresholds) == 1 && (len(n.Thresholds[0].Name) > 1000 || n.Thresholds[0].NRS != nil):
			t.Errorf("%s: %+v", name, n.Thresholds)
		}
	}
}
