package rest

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/deviceaccess/terraform-provider-deviceaccess/server/domain"
)

func TestProblemsSayWhatTheyAreAbout(t *testing.T) {
	t.Parallel()
	other := uuid.MustParse("018f0000-0000-7000-8000-000000000001")
	at := time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)
	const begin = `{"created_at":"2026-11-21T12:00:00Z",`
	for want, p := range map[string]domain.Problem{
		begin + `"error_code":"x","is_access_code_error":true,"managed_access_code_id":"` + other.String() + `","message":""}`: {
			Code:    "x",
			Scope:   domain.OfCode,
			At:      at,
			Other:   other,
			Managed: true,
		},
		begin + `"error_code":"x","is_access_code_error":true,"message":"","unmanaged_access_code_id":"` + other.String() + `"}`: {
			Code:  "x",
			Scope: domain.OfCode,
			At:    at,
			Other: other,
		},
		begin + `"error_code":"x","is_access_code_error":true,"message":""}`: {Code: "x", Scope: domain.OfCode, At: at},
		`{"change_type":"removed",` + begin[1:] + `"error_code":"x","is_access_code_error":true,"message":""}`: {
			Code:   "x",
			Scope:  domain.OfCode,
			At:     at,
			Change: "removed",
		},
	} {
		if got, err := json.Marshal(toErrors([]domain.Problem{p})[0]); err != nil || string(got) != want {
			t.Errorf("%+v is told as %s, want %s: %v", p, got, want, err)
		}
	}
}
