package console

import "github.com/deviceaccess/terraform-provider-deviceaccess/server/overview"

// showHome leads to the workspace of the operator. It shows a choice if there are several.
func (h *handler) showHome(rq *request) error {
	if len(rq.workspaces) == 1 {
		return rq.done(Path+"/w/"+rq.workspaces[0].ID.String(), "")
	}
	list, next, err := rq.ownWorkspaces(rq.query("q"), overview.ParsePosition(rq.query(afterParam)))
	if err != nil {
		return err
	}
	return rq.show(homePage(rq, list, next.String()))
}
