package sqlite

const childDir = "ACP_TEST_ENGINE_DIR"

func child(string) {}
