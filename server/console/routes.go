package console

import (
	"net/http"
	"strings"

	"github.com/go-chi/chi/v5"
	"github.com/go-chi/chi/v5/middleware"

	"github.com/deviceaccess/terraform-provider-deviceaccess/server/admission"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/domain"
)

// route is a page or an action.
type route struct {
	method string
	// pattern is the path below Path. Those of a workspace begin with workspacePrefix.
	pattern string
	// public is true for pages that need no session, such as the sign-in.
	public bool
	// role is the weakest role that may use the route: in the workspace, or else in every workspace. If it is empty,
	// every operator may.
	role domain.Role
	// automatic is true for a route that pages request without the operator.
	automatic bool
	// operation names an action in the audit log: the path of the API's operation that does the same.
	operation string
	handle    func(*request) error
}

// workspacePrefix is the start of the patterns of pages of a workspace.
const workspacePrefix = "/w/{workspace}"

// inWorkspace reports whether the route belongs to a workspace.
func (r route) inWorkspace() bool { return strings.HasPrefix(r.pattern, workspacePrefix) }

// routes returns all routes. Tests derive the matrix of roles from them.
func (h *handler) routes() []route {
	return concat(
		[]route{{method: http.MethodGet, pattern: "", handle: h.showHome}},
		h.todayRoutes(),
		h.lockRoutes(),
		h.codeRoutes(),
		h.climateRoutes(),
		h.peopleRoutes(),
		h.accountRoutes(),
		h.webhookRoutes(),
		h.activityRoutes(),
		h.settingsRoutes(),
		h.searchRoutes(),
		h.liveRoutes(),
		h.signInRoutes(),
		h.accessRoutes(),
	)
}

func concat(parts ...[]route) (all []route) {
	for _, part := range parts {
		all = append(all, part...)
	}
	return all
}

// page returns a route that shows a page of a workspace to operators with any role there.
func page(pattern string, handle func(*request) error) route {
	return route{
		method:  http.MethodGet,
		pattern: workspacePrefix + pattern,
		role:    domain.RoleViewer,
		handle:  handle,
	}
}

// action returns a route that changes something in a workspace.
func action(role domain.Role, pattern, operation string, handle func(*request) error) route {
	return route{
		method:    http.MethodPost,
		pattern:   workspacePrefix + pattern,
		role:      role,
		operation: operation,
		handle:    handle,
	}
}

func (h *handler) router() http.Handler {
	router := chi.NewRouter()
	router.Use(middleware.GetHead)
	router.Get(Path+"/assets/{file}", files.ServeHTTP)
	for _, route := range h.routes() {
		router.Method(route.method, Path+route.pattern, h.serve(route))
	}
	router.NotFound(h.serve(route{handle: func(rq *request) error { return errNoPage }}))
	router.MethodNotAllowed(h.serve(route{handle: func(rq *request) error { return errNoPage }}))
	return admission.Middleware(router, http.HandlerFunc(h.busy))
}
