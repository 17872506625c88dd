package adapter

import (
	"encoding/json"
	"math"
	"testing"
)

func TestSetPointRound(t *testing.T) {
	t.Parallel()
	number := func(v float64) Number { return Number{&v} }
	fahrenheit := NewSetPoint(true, number(40), number(90), Number{})
	plain := NewSetPoint(false, number(7), number(30), Number{})
	fine := NewSetPoint(false, Number{}, Number{}, number(0.1))
	for _, c := range []struct {
		point   SetPoint
		celsius float64
		want    float64
		refused bool
	}{
		{point: plain, celsius: 21.3, want: 21.5},
		{point: plain, celsius: 7, want: 7},
		{point: plain, celsius: 6.9, refused: true},
		{point: plain, celsius: 30.5, refused: true},
		{point: plain, celsius: math.NaN(), refused: true},
		{point: fine, celsius: 21.34, want: 21.3},
		{point: fine, celsius: math.Inf(1), refused: true},
		{point: fahrenheit, celsius: 20, want: 68},
		{point: fahrenheit, celsius: 20.3, want: 69},
		{point: fahrenheit, celsius: (90.0 - 32) / 1.8, want: 90},
		{point: fahrenheit, celsius: 33, refused: true},
	} {
		got, err := c.point.Round("heating", c.celsius)
		if (err != nil) != c.refused || got != c.want || err != nil && ClassOf(err) != Invalid {
			t.Errorf("%v °C at %+v: %v, %v", c.celsius, c.point, got, err)
		}
	}
	if plain.StepCelsius() != 0.5 || fine.StepCelsius() != 0.1 || fahrenheit.StepCelsius() != 0.56 {
		t.Errorf("steps of %v, %v, %v", plain.StepCelsius(), fine.StepCelsius(), fahrenheit.StepCelsius())
	}
}

func TestAbsurdSetPoints(t *testing.T) {
	t.Parallel()
	for text, bounded := range map[string]bool{
		`[7,30]`: true, `[30,7]`: false, `["7","30"]`: false, `[null,{}]`: false, `[-1e9,1e300]`: false,
	} {
		var n [2]Number
		if err := json.Unmarshal([]byte(text), &n); err != nil {
			t.Fatal(err)
		}
		if p := NewSetPoint(false, n[0], n[1], n[0]); (p.Min != nil) != bounded || (p.Max != nil) != bounded {
			t.Errorf("%s: %+v", text, p)
		}
	}
}
