package api

import (
	"net/http"
	"slices"
	"testing"
)

func TestAccessCodesOn(t *testing.T) {
	t.Parallel()
	all := func(t *testing.T, r *Reads, want ...string) {
		t.Helper()
		codes, known := r.AccessCodesOn(t.Context(), "d1")
		var ids []string
		for _, code := range codes {
			ids = append(ids, code.AccessCodeID)
		}
		slices.Sort(ids)
		if !slices.Equal(ids, want) || known != (want != nil) {
			t.Errorf("the codes are %q, known: %v, want %q", ids, known, want)
		}
	}
	for name, heedsNoDevice := range map[string]bool{"": false, "on a list of all devices": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newShelf()
			s.all = heedsNoDevice
			client, r := s.reading(t)
			all(t, r, "a", "b", "c", "d")
			expect(t, r, "d1", "a", true)
			expectCount(t, s, listing, 2)
			if _, err := Call[OkResponse](
				t.Context(),
				client.UpdateAccessCode,
				UpdateAccessCodeRequest{AccessCodeID: "a"},
			); err != nil {
				t.Fatal(err)
			}
			all(t, r)
		})
	}
	t.Run("there are too many", func(t *testing.T) {
		t.Parallel()
		_, r := newShelf().reading(t)
		r.codes.limit = 4
		all(t, r)
	})
	t.Run("the list fails", func(t *testing.T) {
		t.Parallel()
		s := newShelf()
		s.fails = func(string) func(*http.Request) (*http.Response, error) { return says(404, "") }
		_, r := s.reading(t)
		all(t, r)
	})
}
