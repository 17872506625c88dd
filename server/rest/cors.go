package rest

import "net/http"

const (
	corsMethods = "GET,POST,PUT,PATCH,DELETE,OPTIONS"
	corsHeaders = "Authorization,Content-Type,seam-workspace,client-session-token,seam-client-session-token,seam-publishable-key,idempotency-key"
)

// cors allows pages of every origin to call the API: credentials are headers that the page must know, never cookies.
// Access-Control-Allow-Credentials is for @seamapi/http, which sends client session tokens withCredentials.
// OPTIONS is answered here, without authentication.
func cors(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		header := w.Header()
		header.Add("Vary", "Origin")
		origin := r.Header.Get("Origin")
		if origin != "" {
			header.Set("Access-Control-Allow-Origin", origin)
			header.Set("Access-Control-Allow-Credentials", "true")
			header.Set("Access-Control-Expose-Headers", requestIDHeader+","+replayedHeader)
		}
		if r.Method != http.MethodOptions {
			next.ServeHTTP(w, r)
			return
		}
		if origin != "" {
			header.Set("Access-Control-Allow-Methods", corsMethods)
			header.Set("Access-Control-Allow-Headers", corsHeaders)
			if wanted := r.Header.Get("Access-Control-Request-Headers"); wanted != "" {
				header.Set("Access-Control-Allow-Headers", wanted)
			}
			header.Set("Access-Control-Max-Age", "86400")
		}
		w.WriteHeader(http.StatusOK)
	})
}
