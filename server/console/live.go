package console

func (h *handler) liveRoutes() []route { return nil }
