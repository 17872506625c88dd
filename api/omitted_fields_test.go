package api

import (
	"encoding/json"
	"testing"
)

func TestCodesGetOmittedFields(t *testing.T) {
	t.Parallel()
	for encoded, want := range map[string]AccessCode{
		`{}`: {IsManaged: true, Type: Ongoing},
		`{"is_managed": null, "starts_at": "2030-01-01T00:00:00Z"}`: {IsManaged: true, Type: TimeBound},
		`{"is_managed": false, "type": "x"}`:                        {Type: "x"},
	} {
		var code AccessCode
		if err := json.Unmarshal(
			[]byte(encoded),
			&code,
		); err != nil || code.IsManaged != want.IsManaged ||
			code.Type != want.Type {
			t.Errorf("%s is %v, %q, %v", encoded, code.IsManaged, code.Type, err)
		}
	}
	var unmanaged UnmanagedAccessCode
	if err := json.Unmarshal(
		[]byte(`{"ends_at": "2030-01-01T00:00:00Z"}`),
		&unmanaged,
	); err != nil || unmanaged.IsManaged ||
		unmanaged.Type != TimeBound {
		t.Errorf("%v, %q, %v", unmanaged.IsManaged, unmanaged.Type, err)
	}
}
