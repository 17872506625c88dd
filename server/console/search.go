package console

func (h *handler) searchRoutes() []route { return nil }
