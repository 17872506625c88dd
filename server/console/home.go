package console

// showHome leads to the workspace of the operator. It shows a choice if there are several.
func (h *handler) showHome(rq *request) error {
	if len(rq.workspaces) == 1 {
		return rq.done(Path+"/w/"+rq.workspaces[0].ID.String(), "")
	}
	return rq.show(homePage(rq))
}
