package chaos_test

import (
	"fmt"
	"strings"
	"testing"
)

// expectedRefusals are rejections that guests cause: a PIN where the vendor chooses it, a PIN that the lock rejects, an
// unmanaged code that is managed by now, a code at the keypad of an offline lock, and an end that has passed when a
// server handles the request.
var expectedRefusals = []string{
	"/access_codes/generate_code 400 invalid_input The vendor of this device chooses the PINs",
	"/access_codes/update 400 invalid_input A PIN on this device must not ",
	"/access_codes/create 400 invalid_input ends_at must be in the future",
	"/access_codes/update 400 invalid_input ends_at must be in the future",
	"/access_codes/unmanaged/delete 404 access_code_not_found ",
	"/access_codes/simulate/create_unmanaged_access_code 400 device_offline ",
}

// judgeRefusals limits unexplained rejections: a server that rejects everything would otherwise keep all its promises.
func judgeRefusals(complain func(string, ...any), asked, refused map[string]int) {
refusals:
	for what, n := range refused {
		for _, e := range expectedRefusals {
			if strings.HasPrefix(what, e) {
				continue refusals
			}
		}
		path, _, _ := strings.Cut(what, " ")
		if n > 1+asked[path]/few {
			complain("%d of %d requests were refused: %s", n, asked[path], what)
		}
	}
}

func TestJudgeRefusals_RejectsServerThatRefusesEverything(t *testing.T) {
	t.Parallel()
	asked := map[string]int{
		"/access_codes/create":           1000,
		"/access_codes/update":           1000,
		"/access_codes/unmanaged/delete": 100,
		"/acs/users/delete":              10,
	}
	for want, refused := range []map[string]int{
		{
			"/access_codes/update 400 invalid_input A PIN on this device must not contain 0 (no_zeros)": 300, "/access_codes/unmanaged/delete 404 access_code_not_found Could": 77,
			"/access_codes/create 400 unknown No": 21, "/acs/users/delete 404 acs_user_not_found No": 1,
		},
		{"/access_codes/create 400 unknown No": 22},
		{"/access_codes/create 429 too_many_requests No": 1000, "/acs/users/delete 404 acs_user_not_found No": 2},
	} {
		var wrong []string
		judgeRefusals(
			func(format string, v ...any) { wrong = append(wrong, fmt.Sprintf(format, v...)) },
			asked,
			refused,
		)
		if len(wrong) != want {
			t.Errorf("%v: %q, want %d complaints", refused, wrong, want)
		}
	}
}
