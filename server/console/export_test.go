package console

import "github.com/deviceaccess/terraform-provider-deviceaccess/server/domain"

// Route describes a route to tests.
type Route struct {
	Method, Pattern string
	Public          bool
	InWorkspace     bool
	Role            domain.Role
}

// Routes returns all routes.
func Routes() (all []Route) {
	h := &handler{Options: Options{Reveal: true}}
	for _, r := range h.routes() {
		all = append(all, Route{r.method, r.pattern, r.public, r.inWorkspace(), r.role})
	}
	return all
}

// Pages returns the paths of the navigation, below the workspace.
func Pages() (all []string) {
	for _, p := range pages {
		all = append(all, p.path)
	}
	return all
}
