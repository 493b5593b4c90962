#include "session_file.h"

#include "input_file.h"
#include "output_file.h"

namespace cli {

void save_session(inlay::Session& session, const std::string& path) {
    OutputFile file(path);
    session.save([&file](const void* bytes, std::size_t n_bytes) {
        file.write(bytes, n_bytes);
        return true;
    });
    file.finish();
}

inlay::LoadResult load_session(inlay::Session& session, const std::string& path) {
    InputFile file(path);
    const inlay::LoadResult loaded =
        session.load([&file](void* buffer, std::size_t n_bytes) { return file.read(buffer, n_bytes); });
    char behind;
    if (file.read(&behind, 1) != 0) throw inlay::Error(INLAY_E_FORMAT, (path + ": goes on behind its session").c_str());
    return loaded;
}

}  // namespace cli
