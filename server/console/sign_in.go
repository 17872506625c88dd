package console

func (h *handler) signInRoutes() []route { return nil }
