# Packs a folder with RubyGems' tar writer or rubyzip: ruby write.rb KIND FOLDER ARCHIVE
require "rubygems/package"
require "zip"

kind, folder, archive = ARGV
paths = Dir.glob("**/*", File::FNM_DOTMATCH, base: folder).reject { |path| File.basename(path) == "." }.sort

if kind == "tar"
  File.open(archive, "wb") do |file|
    Gem::Package::TarWriter.new(file) do |tar|
      paths.each do |path|
        full = File.join(folder, path)
        if File.symlink?(full)
          tar.add_symlink(path, File.readlink(full), 0o777)
        elsif File.directory?(full)
          tar.mkdir(path, 0o755)
        else
          tar.add_file_simple(path, 0o644, File.size(full)) { |entry| entry.write(File.binread(full)) }
        end
      end
    end
  end
else
  Zip.unicode_names = true
  Zip::File.open(archive, Zip::File::CREATE) do |zip|
    paths.each { |path| zip.add(path, File.join(folder, path)) }
  end
end
