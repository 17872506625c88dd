import {
  to = deviceaccess_connect_webview.owner
  id = "0190a5f2-4c1e-7b33-8d21-3f0e5a9b7c44"
}
