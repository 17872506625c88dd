package sandbox_test

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/go-chi/chi/v5"

	"github.com/deviceaccess/terraform-provider-deviceaccess/server/sandbox"
)

// Every client authenticates with the token of an account or of the owner, or logs in.
func TestNoRouteAnswersStrangers(t *testing.T) {
	t.Parallel()
	s := sandbox.New(sandbox.Options{})
	t.Cleanup(s.Close)
	routes, ok := s.Handler().(chi.Routes)
	if !ok {
		t.Fatalf("the routes cannot be walked: %T", s.Handler())
	}
	walked := 0
	if err := chi.Walk(routes, func(method, route string, _ http.Handler, _ ...func(http.Handler) http.Handler) error {
		walked++
		for _, token := range []string{"", "Bearer ", "Bearer guess"} {
			r := httptest.NewRequestWithContext(t.Context(), method,
				strings.NewReplacer("{", "", "}", "", "/*", "").Replace(route), strings.NewReader("{}"))
			r.Header.Set("Authorization", token)
			w := httptest.NewRecorder()
			s.Handler().ServeHTTP(w, r)
			if w.Code != http.StatusUnauthorized {
				t.Errorf("%s %s with %q is answered %d, want 401", method, route, token, w.Code)
			}
		}
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	if walked < 30 {
		t.Errorf("%d routes were walked", walked)
	}
}
