#include "text/special_scanner.h"

#include <algorithm>
#include <catch2/catch.hpp>
#include <random>
#include <string>

using namespace inlay;

namespace {

using Match = SpecialScanner::Match;

std::vector<Match> scan(const std::vector<std::string>& texts, const std::string& text) {
    SpecialScanner scanner;
    for (size_t id = 0; id < texts.size(); ++id) scanner.add(texts[id], static_cast<int32_t>(id));
    scanner.finish();
    return scanner.scan(text);
}

// "begin:id" of each match.
std::string written(const std::vector<Match>& matches) {
    std::string text;
    for (const Match& match : matches) text += std::to_string(match.begin) + ":" + std::to_string(match.id) + " ";
    return text;
}

// The definition: lengths in descending order, each from left to right in what is left.
std::vector<Match> plain_scan(const std::vector<std::string>& texts, const std::string& text) {
    std::vector<bool> taken(text.size());
    std::vector<Match> matches;
    for (size_t length = text.size(); length > 0; --length) {
        for (size_t begin = 0; begin + length <= text.size(); ++begin) {
            const auto found = std::find(texts.begin(), texts.end(), text.substr(begin, length));
            bool free = found != texts.end();
            for (size_t i = begin; free && i < begin + length; ++i) free = !taken[i];
            if (!free) continue;
            for (size_t i = begin; i < begin + length; ++i) taken[i] = true;
            matches.push_back({begin, static_cast<uint32_t>(length), static_cast<int32_t>(found - texts.begin())});
        }
    }
    std::sort(matches.begin(), matches.end(), [](const Match& a, const Match& b) { return a.begin < b.begin; });
    return matches;
}

}  // namespace

TEST_CASE("special scanner: longer tokens first, wherever they stand", "[special]") {
    CHECK(written(scan({"ab", "bcd"}, "abcd")) == "1:1 ");
    CHECK(written(scan({"ab", "abc"}, "ababcab")) == "0:0 2:1 5:0 ");
    CHECK(written(scan({"<a>", "<a><b>"}, "<a><a><b>")) == "0:0 3:1 ");
    CHECK(written(scan({" ", "  ", "    "}, "       ")) == "0:2 4:1 6:0 ");
}

TEST_CASE("special scanner: nothing to find", "[special]") {
    CHECK(scan({}, "abc").empty());
    CHECK(scan({""}, "abc").empty());
    CHECK(scan({"abcd"}, "abc").empty());
    CHECK(scan({"a"}, "").empty());
}

TEST_CASE("special scanner: equals its definition", "[special]") {
    std::mt19937 random(3);
    const auto word = [&](size_t most) {
        std::string text(random() % most + 1, 'a');
        for (char& c : text) c = static_cast<char>('a' + random() % 2);
        return text;
    };
    for (int i = 0; i < 3000; ++i) {
        std::vector<std::string> texts;
        for (size_t n = random() % 6 + 1; n > 0; --n) texts.push_back(word(5));
        const std::string text = word(30);
        INFO(text);
        CHECK(written(scan(texts, text)) == written(plain_scan(texts, text)));
    }
}

TEST_CASE("special scanner: nested tokens in a long text", "[special]") {
    std::vector<std::string> texts;
    for (size_t length = 1; length <= 300; ++length) texts.emplace_back(length, 'x');
    const auto matches = scan(texts, std::string(200'000, 'x'));
    CHECK(matches.size() == 200'000 / 300 + 1);
}
